/**
 * Whether a run's input has the shape that the code relies on: a wrong input would throw in the middle of the workflow, and the
 * server would then repeat the workflow task forever. Pure.
 */
import { Undecodable } from "../activities/contract/undecodable.ts";
import { isJsonObject } from "../activities/text/json.ts";
import { partsOf, isEmptyMessage } from "../activities/contract/guidance.ts";
import type { CarriedState, CodingAgentInput } from "./messages.ts";

type Fits = (value: unknown) => boolean;

const isText: Fits = (value) => typeof value === "string";
/** JSON encodes numbers that are not finite as null. */
const isNumber: Fits = (value) => typeof value === "number" || value === null;
const isFlag: Fits = (value) => typeof value === "boolean";
const isTime: Fits = (value) => isNumber(value) && !Number.isNaN(new Date(Number(value)).getTime());
const isListOf =
  (fits: Fits): Fits =>
  (value) =>
    Array.isArray(value) && value.every(fits);
/** Absent fields are accepted. */
const isObjectOf =
  (shape: Readonly<Record<string, Fits>>): Fits =>
  (value) =>
    isJsonObject(value) && misfit(value, shape) === undefined;

function misfit(
  value: Readonly<Record<string, unknown>>,
  shape: Readonly<Record<string, Fits>>,
): string | undefined {
  return Object.keys(shape).find((name) => value[name] !== undefined && shape[name]?.(value[name]) === false);
}

const isPart: Fits = (part) =>
  isJsonObject(part) &&
  (part["type"] === "text"
    ? isText(part["text"])
    : part["type"] === "file" && isText(part["data"]) && isText(part["mediaType"]));

const isItem: Fits = (item) =>
  isJsonObject(item) &&
  isText(item["id"]) &&
  isListOf(isPart)(item["parts"]) &&
  partsOf({ parts: item["parts"] }) !== undefined &&
  !Number.isNaN(Date.parse(String(item["queuedAt"])));

const isOutcome: Fits = (outcome) =>
  isJsonObject(outcome) &&
  ["completed", "failed", "cancelled", "max_steps"].includes(String(outcome["status"])) &&
  (outcome["error"] === undefined ||
    (isJsonObject(outcome["error"]) &&
      isText(outcome["error"]["type"]) &&
      isText(outcome["error"]["message"])));

/** What runs carry by continuing as new: each of its fields, so that none is forgotten. */
const CARRIED: Readonly<Record<keyof CarriedState, Fits>> = {
  queue: isListOf(isItem),
  parked: isNumber,
  seenIds: isListOf(isText),
  step: isNumber,
  results: isNumber,
  steps: isNumber,
  moreSteps: isNumber,
  endsAtLimit: isFlag,
  round: isNumber,
  breaker: isNumber,
  futile: isNumber,
  roundStep: isNumber,
  recentCalls: isListOf(isText),
  nudged: isFlag,
  nudge: isFlag,
  compacted: isFlag,
  overflows: isNumber,
  emptyAnswers: isNumber,
  unfinished: isNumber,
  mismatches: isNumber,
  mismatch: isText,
  notice: isText,
  writtenCalls: isNumber,
  cuts: isNumber,
  costUsd: isNumber,
  fallback: isObjectOf({ index: isNumber, sinceMs: isNumber }),
  limits: isObjectOf({ sinceMs: isTime, count: isNumber, untilMs: isTime }),
  switched: isText,
  pushedAtMs: isNumber,
  delivered: isText,
  waitingCalls: isListOf(
    (waiting) => isJsonObject(waiting) && isNumber(waiting["index"]) && isJsonObject(waiting["call"]),
  ),
  interrupting: isFlag,
  leftVersion: isText,
  deadlineAtMs: isTime,
  compactRequest: isObjectOf({ focus: isText }),
  undoRequests: isListOf(isText),
  context: isObjectOf({ used: isNumber, estimated: isFlag, prunable: isNumber }),
  usage: isObjectOf({
    input: isNumber,
    output: isNumber,
    cached: isNumber,
    reasoning: isNumber,
    calls: isNumber,
  }),
};

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
  if (guidance !== undefined && !isListOf(isItem)(guidance)) return "its guidance is not a list of messages";
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
