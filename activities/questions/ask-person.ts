/**
 * Asks a person: stores a call's question and announces it to watchers. The workflow waits for the answer.
 *
 * Idempotency key: (session, epoch, call). Side effects: the question's row, an event. Heartbeat: by timer. Retry class:
 * Postgres. Cancel: none needed, it is short.
 */
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import type { QuestionSettings } from "../config/agent-config.ts";
import type { RunToolInput } from "../contract/activities.ts";
import { cutChars, shorten, cutTail } from "../text/cut.ts";
import { superseded } from "../contract/failures.ts";
import type { ToolCallPart } from "../contract/message.ts";
import {
  type AskedPerson,
  type QuestionKind,
  type Settlement,
  MAX_SHOWN_CHARS,
} from "../contract/questions.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { readCallState } from "../mcp/mcp.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { unlessMissing } from "../runtime/note-missing.ts";
import { inputHash, questionId, standingVerdict } from "../tools/permissions/approval.ts";
import type { Queryable } from "../store/db.ts";
import { namesToAsk } from "../store/egress.ts";
import { appendEvents } from "../store/events.ts";
import {
  findOpenQuestion,
  openQuestion,
  openQuestions,
  timeLeftMs,
  type QuestionOption,
  type QuestionRow,
} from "../store/questions.ts";
import { lockRunAlone } from "../store/session-locks.ts";
import type { Session } from "../store/sessions.ts";
import { findAskedCall, type LedgerRow } from "../store/tool-calls.ts";
import { callHasEnded, endedBefore, giveResult } from "../step/call-result.ts";
import { exitPlan, type ExitPlanInput } from "../tools/exit-plan.ts";
import { askUser, type AskUserInput } from "../tools/ask-user.ts";
import type { Verdict } from "../tools/permissions/permissions.ts";

/** Of a question in the history. */
const MAX_FACTS_CHARS = 200;

export function createAskPerson(deps: AgentDeps) {
  return (input: RunToolInput): Promise<AskedPerson> =>
    inScope(deps, (scope) =>
      unlessMissing<AskedPerson>(deps, scope, input.step, {
        body: () => ask(deps, scope, input),
        missing: { kind: "passed" },
      }),
    );
}

async function ask(deps: AgentDeps, scope: ActivityScope, input: RunToolInput): Promise<AskedPerson> {
  const { db } = deps.store;
  const { step } = input;
  const session = await enterSession(deps, scope, { step, phase: "tools" });
  const { row, call } = await findAskedCall(db, session.id, input);
  // A second attempt finds what the first one has done.
  const later = callHasEnded(row) ? await findOpenQuestion(db, session.id, questionId(input)) : undefined;
  if (later?.blocks === false)
    return {
      kind: "later",
      question: shownFacts(deps, later, await timeLeftMs(db, later)),
      facts: await endedBefore(db, row, call),
    };
  const asks = await asksNow(db, session, { input, row, call });
  if (asks === undefined) return { kind: "passed" };

  const settings = session.config.questions;
  const opened = await db.transaction(async (tx) => {
    if (!(await lockRunAlone(tx, session.id, scope.runId))) throw superseded("the question was not asked");
    const open = await openQuestions(tx, session.id);
    const { question, isNew } = await openAbout(tx, scope, session, { input, call, asks });
    const isTooMuch = open.filter(
      ({ id, blocks }) => id !== question.id && blocks === question.blocks,
    ).length;
    const most = question.blocks ? settings.maxOpen : MAX_LATER;
    // A question that an earlier run asked keeps the rest of its time.
    const expiresInMs = isNew ? expiryOf(asks, settings).expiresInMs : await timeLeftMs(tx, question);
    return { question, isTooMuch: isTooMuch >= most, expiresInMs };
  });
  // After a reset, a run finds what people answered before it.
  if (asks.kind === "mcp" && opened.question.status !== "open") return { kind: "passed" };
  const settled = unattended(opened.question, settings, opened.isTooMuch);
  const question = shownFacts(deps, opened.question, opened.expiresInMs);
  if (opened.question.blocks || settled !== undefined) return { kind: "asked", question, settled };
  const text = `Asked: question ${question.id}. Work on; the answer comes as a message. If nothing else is left to do, wait for it.`;
  const facts = await db.transaction((tx) =>
    giveResult(tx, { session, row, call, events: [] }, { outcome: "completed", text }),
  );
  return { kind: "later", question, facts };
}

/** Questions that do not block, open at once. Source: the tool's contract. */
const MAX_LATER = 10;

const shownFacts = (deps: AgentDeps, row: QuestionRow, expiresInMs: number | undefined) => ({
  ...factsOf(row, expiresInMs),
  ...(deps.idsOnly === true ? { text: "" } : {}),
});

interface AsksAbout {
  readonly input: RunToolInput;
  readonly call: ToolCallPart;
  readonly asks: Asks;
}

/** Stores a question about a call, unless it is stored. */
async function openAbout(
  tx: Queryable,
  { attempt }: Pick<ActivityScope, "attempt">,
  session: Session,
  { input, call, asks }: AsksAbout,
): Promise<{ readonly question: QuestionRow; readonly isNew: boolean }> {
  const { row: question, isNew } = await openQuestion(tx, {
    ...asks,
    ...expiryOf(asks, session.config.questions),
    sessionId: session.id,
    epoch: session.epoch,
    id: input.question ?? questionId(input),
    step: input.step,
    callIndex: input.index,
    inputHash: inputHash(call),
  });
  if (isNew) await appendEvents(tx, session.id, session.epoch, [askedEvent(question, attempt)]);
  return { question, isNew };
}

/** Stores again the question of a call that its run holds an answer to. @returns undefined if the call asks nothing now */
export async function openAgain(
  tx: Queryable,
  scope: Pick<ActivityScope, "attempt">,
  session: Session,
  of: { readonly input: RunToolInput; readonly row: LedgerRow; readonly call: ToolCallPart },
): Promise<QuestionRow | undefined> {
  const asks = await asksNow(tx, session, of);
  return asks && (await openAbout(tx, scope, session, { ...of, asks })).question;
}

/** What is asked about a call before it runs; or, after it ran, for permission to reach what it was refused. */
async function asksNow(
  db: Queryable,
  session: Session,
  of: { readonly input: RunToolInput; readonly row: LedgerRow; readonly call: ToolCallPart },
): Promise<Asks | undefined> {
  const { step, about, question } = of.input;
  if (about === undefined) return of.row.status === "pending" ? questionOf(db, session, of.call) : undefined;
  if (about === "server") return callHasEnded(of.row) ? undefined : serverQuestion(of.row, question);
  const names = await namesToAsk(db, { sessionId: session.id, epoch: session.epoch, step });
  return names.length === 0 ? undefined : { ...PLAIN, kind: "egress", text: egressText(names) };
}

/** What the call's server asks, in its own words. */
function serverQuestion({ mcpState }: LedgerRow, id: string | undefined): Asks | undefined {
  const serverAsk = readCallState(mcpState).asked?.questions.find((question) => question.id === id);
  if (serverAsk === undefined) return undefined;
  const options = serverAsk.options?.map((label) => ({ label })) ?? null;
  return { ...PLAIN, kind: "mcp", text: serverAsk.text, options };
}

/** Without anything to choose, and without a default. */
const PLAIN = { options: null, defaultText: null, timeoutMs: undefined, blocks: true };

const egressText = (names: readonly string[]) =>
  `The sandbox asked for names that are not listed. May it reach them for the rest of the session?\n${names.join("\n")}`;

interface Asks {
  readonly kind: QuestionKind;
  readonly text: string;
  readonly options: readonly QuestionOption[] | null;
  readonly defaultText: string | null;
  readonly timeoutMs: number | undefined;
  readonly blocks: boolean;
}

/** The question that a call asks; undefined if it asks none. */
async function questionOf(db: Queryable, session: Session, call: ToolCallPart): Promise<Asks | undefined> {
  if (call.toolName === askUser.name) return asksUser(call);
  if (call.toolName === exitPlan.name)
    return { ...PLAIN, kind: "plan", text: (exitPlan.input.parse(call.input) as ExitPlanInput).plan };
  const verdict = await standingVerdict(db, { session, call });
  if (verdict.action !== "ask") return undefined;
  return { ...PLAIN, kind: "approval", text: approvalText(call, verdict) };
}

function asksUser(call: ToolCallPart): Asks {
  const input = askUser.input.parse(call.input) as AskUserInput;
  const options = input.options ?? [];
  return {
    kind: "ask",
    text: input.question,
    options: options.length > 0 ? options : null,
    defaultText: input.default ?? null,
    blocks: input.block !== false,
    timeoutMs: input.timeout_seconds === undefined ? undefined : input.timeout_seconds * 1_000,
  };
}

/** No answer counts as the default only if there is one, and a timeout was set. */
function expiryOf({ defaultText, timeoutMs }: Asks, { defaultAfter }: QuestionSettings) {
  const waits = [timeoutMs, defaultAfter].filter((ms) => ms !== undefined);
  return { expiresInMs: defaultText === null || waits.length === 0 ? undefined : Math.min(...waits) };
}

/** In an unattended session: the model's own default, else nothing. */
function unattended(
  { defaultText }: QuestionRow,
  { mode }: QuestionSettings,
  isTooMuch: boolean,
): Settlement | undefined {
  if (isTooMuch) return { how: "withdrawn", why: "too-many" };
  if (mode === "ask") return undefined;
  return mode === "default" && defaultText !== null
    ? { how: "defaulted", why: "unattended" }
    : { how: "withdrawn", why: "unattended" };
}

function factsOf(row: QuestionRow, expiresInMs: number | undefined) {
  const options = row.options as readonly QuestionOption[] | null;
  return {
    id: row.id,
    kind: row.kind as QuestionKind,
    text: factText(row),
    options: options === null ? undefined : options.map(({ label }) => label),
    default: row.defaultText === null ? undefined : shorten(row.defaultText, MAX_FACTS_CHARS),
    expiresInMs,
  };
}

/** In the Web UI, whose readers learn where the rest is. */
function factText({ text, kind, sessionId }: QuestionRow): string {
  const rest = ` … read all: longhaul questions ${sessionId}`;
  return text.length <= MAX_FACTS_CHARS || kind === "ask"
    ? shorten(text, MAX_FACTS_CHARS)
    : `${cutChars(text, Math.max(0, MAX_FACTS_CHARS - rest.length))}${rest}`;
}

function askedEvent(row: QuestionRow, attempt: number) {
  return {
    type: "question:asked" as const,
    step: row.step,
    attempt,
    data: {
      id: row.id,
      kind: row.kind,
      text: row.kind === "approval" ? shownQuestion(row.sessionId, row.text) : row.text,
      options: row.options as QuestionOption[] | null,
      default: row.defaultText,
      expiresAt: row.expiresAt?.toISOString() ?? null,
    },
  };
}

/** A call of this length is seen whole, also in Temporal's Web UI. */
const SHORT_CHARS = 160;
/** Of a matched part, on each side of the words that a rule names. */
const AROUND_CHARS = 80;

type Asking = Extract<Verdict, { readonly action: "ask" | "deny" }>;

/** The whole text of an approval, however long the call is. */
export function approvalText(call: ToolCallPart, { rule, about }: Pick<Asking, "rule" | "about">): string {
  const whole = inputText(call);
  const { match } = rule;
  const because = match === undefined ? "" : `\n(rule: ${match})`;
  if (whole.length <= SHORT_CHARS) return `${call.toolName}: ${whole}${because}`;
  const part = matchedPart(about, match ?? "");
  return `${call.toolName}: ${part}${because}\nThe whole call has ${whole.length} characters:\n${whole}`;
}

/** The part of the call that a person needs to see before allowing it. */
function inputText({ input }: ToolCallPart): string {
  const { command, ...more } = (input ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof command !== "string") return JSON.stringify(input) ?? "";
  return Object.keys(more).length === 0 ? command : `${command}\n${JSON.stringify(more)}`;
}

/** What surrounds the longest words of the pattern; where none is found, the beginning. */
function matchedPart(text: string, pattern: string): string {
  const pieces = pattern.split("*").toSorted((a, b) => b.length - a.length);
  const [longest = ""] = pieces;
  const at = Math.max(0, longest === "" ? 0 : text.indexOf(longest));
  const from = Math.max(0, at - AROUND_CHARS);
  const before = cutTail(text.slice(0, at), at - from);
  const rest = text.slice(at);
  return `${from === 0 ? "" : "…"}${before}${shorten(rest, longest.length + AROUND_CHARS)}`;
}

/** A stored question as its event has it. What is cut can be read whole, and the text says how. */
export function shownQuestion(session: string, text: string): string {
  if (text.length <= MAX_SHOWN_CHARS) return text;
  const last = `\n… cut: ${MAX_SHOWN_CHARS} of ${text.length} characters are shown. Read all of it before you answer: longhaul questions ${session}`;
  return `${cutChars(text, MAX_SHOWN_CHARS - last.length)}${last}`;
}
