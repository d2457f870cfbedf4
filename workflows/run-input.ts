/**
 * What a run is started with: the shape of each part once, from which its type follows and by which an input is checked. A wrong
 * input would throw in the middle of the workflow, and the server would then repeat the workflow task forever. Own checks, because
 * no library belongs into the workflow's bundle.
 */
import { isJsonObject } from "../activities/text/json.ts";
import type { ContextSize } from "../activities/contract/request-size.ts";
import type { ClosedSession, ModelStepInput } from "../activities/contract/activities.ts";
import type { DeliveryOrder } from "../activities/contract/delivery.ts";
import { type Guidance, partsOf, isEmptyMessage } from "../activities/contract/guidance.ts";
import type { Limit } from "../activities/contract/limits.ts";
import { Undecodable } from "../activities/contract/undecodable.ts";
import type { VerifiedWork } from "../activities/contract/verify.ts";
import type { LaterQuestion, WaitingCall } from "./asking.ts";

type Check<T> = (value: unknown) => value is T;
type Of<C> = C extends Check<infer T> ? T : never;
/** Each field may be absent: then a run begins with its initial value. */
type Fields<Shape> = { readonly [Name in keyof Shape]?: Of<Shape[Name]> };

const isText: Check<string> = (value) => typeof value === "string";
/** JSON encodes numbers that are not finite as null. */
const isNumber: Check<number> = (value): value is number => typeof value === "number" || value === null;
const isFlag: Check<boolean> = (value) => typeof value === "boolean";
/** In ms since 1970. */
const isTime: Check<number> = (value): value is number =>
  isNumber(value) && !Number.isNaN(new Date(Number(value)).getTime());
const isListOf =
  <T>(isItem: Check<T>): Check<readonly T[]> =>
  (value): value is readonly T[] =>
    Array.isArray(value) && value.every(isItem);
const isObjectOf =
  <Shape extends Readonly<Record<string, Check<unknown>>>>(shape: Shape): Check<Fields<Shape>> =>
  (value): value is Fields<Shape> =>
    isJsonObject(value) && misfit(value, shape) === undefined;
/** For a part that others define: what the run's code relies on. */
const isA =
  <T>(fits: (value: Readonly<Record<string, unknown>>) => boolean): Check<T> =>
  (value): value is T =>
    isJsonObject(value) && fits(value);

/** The path of the first field that is there and does not fit. */
function misfit(
  value: Readonly<Record<string, unknown>>,
  shape: Readonly<Record<string, Check<unknown>>>,
): string | undefined {
  return Object.keys(shape).find((name) => value[name] !== undefined && shape[name]?.(value[name]) === false);
}

const isPart = isA((part) =>
  part["type"] === "text"
    ? isText(part["text"])
    : part["type"] === "file" && isText(part["data"]) && isText(part["mediaType"]),
);
const isMessage = isA<Guidance>(
  ({ id, parts, queuedAt }) =>
    isText(id) &&
    isListOf(isPart)(parts) &&
    partsOf({ parts }) !== undefined &&
    !Number.isNaN(Date.parse(String(queuedAt))),
);

/** What a run hands over to the next one of its session (continue-as-new): the fields of its state under the same names. */
const CARRIED = {
  /** `seen`: recently seen client ids, newest last. What waits is in Postgres. */
  inbox: isObjectOf({ seen: isListOf(isText) }),
  step: isNumber,
  results: isNumber,
  steps: isNumber,
  moreSteps: isNumber,
  endsAtLimit: isFlag,
  context: isA<ContextSize>(
    ({ used, estimated, prunable }) =>
      isNumber(used) && isFlag(estimated) && (prunable === undefined || isNumber(prunable)),
  ),
  compaction: isObjectOf({
    round: isNumber,
    breaker: isNumber,
    futile: isNumber,
    lastStep: isNumber,
    isFresh: isFlag,
    request: isObjectOf({ focus: isText }),
    undoRequests: isListOf(isText),
  }),
  answers: isObjectOf({
    overflows: isNumber,
    empty: isNumber,
    unfinished: isNumber,
    mismatches: isNumber,
    writtenCalls: isNumber,
    cuts: isNumber,
  }),
  note: isA<NonNullable<ModelStepInput["note"]>>(({ kind, text }) => isText(kind) && isText(text)),
  repetition: isObjectOf({ calls: isListOf(isText), isWarned: isFlag }),
  usage: isObjectOf({
    input: isNumber,
    output: isNumber,
    cached: isNumber,
    reasoning: isNumber,
    calls: isNumber,
  }),
  costUsd: isNumber,
  deadlineAtMs: isTime,
  fallback: isA<{ readonly index: number; readonly sinceMs: number }>(
    ({ index, sinceMs }) => isNumber(index) && isNumber(sinceMs),
  ),
  limits: isA<{ readonly sinceMs: number; readonly count: number; readonly untilMs: number }>(
    ({ sinceMs, count, untilMs }) => isTime(sinceMs) && isNumber(count) && isTime(untilMs),
  ),
  switched: (value: unknown): value is "fallback" | "return" => value === "fallback" || value === "return",
  /** The open calls of a step that only waited for people. */
  waitingCalls: isListOf(isA<WaitingCall>(({ index, call }) => isNumber(index) && isJsonObject(call))),
  /** Whether a person interrupted such a step, which the run that left it could no longer act on. */
  interrupting: isFlag,
  leftVersion: isText,
  waits: isNumber,
  later: isListOf(
    isA<LaterQuestion>(({ id, step, index }) => isText(id) && isNumber(step) && isNumber(index)),
  ),
  commands: isObjectOf({ started: isNumber, isTold: isFlag }),
  delivery: isObjectOf({ pushedAtMs: isNumber, last: isText }),
  verify: isObjectOf({
    round: isNumber,
    last: isA<VerifiedWork>(({ outcome, tree }) => isText(outcome) && isText(tree)),
  }),
} as const;

export type CarriedState = Fields<typeof CARRIED>;

/** The argument of a run; none at all for the first run of a session that a client prepared. */
export interface CodingAgentInput {
  /** Only if no client prepared the session: started from the Web UI or Temporal's CLI. */
  readonly task?: string;
  /** The schedule that has the session's task and settings. */
  readonly schedule?: string;
  /** The first message of a session that is resumed. */
  readonly guidance?: readonly Guidance[];
  /** A session that has ended delivers its work, and keeps its outcome. */
  readonly deliver?: {
    readonly order: DeliveryOrder;
    readonly outcome: {
      readonly status: "completed" | "failed" | "cancelled" | "max_steps";
      readonly limit?: Limit;
      readonly error?: { readonly type: string; readonly message: string };
      readonly verified?: VerifiedWork;
    };
  };
  readonly carried?: CarriedState;
}

/** The workflow function, for those that continue it as new. */
export type CodingAgent = (input?: CodingAgentInput) => Promise<ClosedSession>;

const isOutcome = isA(
  ({ status, error }) =>
    ["completed", "failed", "cancelled", "max_steps"].includes(String(status)) &&
    (error === undefined || (isJsonObject(error) && isText(error["type"]) && isText(error["message"]))),
);

/** Why a start's argument is refused, as a text for its sender; undefined if it is accepted. */
export function startRefusal(input: unknown): string | undefined {
  if (input === undefined) return undefined;
  if (input instanceof Undecodable) return `its argument could not be decoded (${input.description})`;
  if (!isJsonObject(input)) return "its argument is not an object";
  const { task, schedule, guidance, deliver, carried } = input as {
    readonly [Name in keyof CodingAgentInput]: unknown;
  };
  if (task !== undefined && !isText(task)) return "its task is not a text";
  if (typeof task === "string" && isEmptyMessage([{ type: "text", text: task }])) return "its task is blank";
  if (schedule !== undefined && !isText(schedule)) return "its schedule is not a name";
  if (guidance !== undefined && !isListOf(isMessage)(guidance))
    return "its guidance is not a list of messages";
  if (
    deliver !== undefined &&
    !(isJsonObject(deliver) && isJsonObject(deliver["order"]) && isOutcome(deliver["outcome"]))
  )
    return "what it is to deliver is not an order";
  if (carried === undefined) return undefined;
  if (!isJsonObject(carried)) return "what it carries over is not an object";
  const wrong = misfit(carried, CARRIED);
  return wrong === undefined ? undefined : `what it carries over has a wrong ${wrong}`;
}
