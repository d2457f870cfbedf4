/** The questions that a step's calls ask of people, as the run holds them. None is open at a step boundary. */
import type { CallFacts } from "../activities/contract/activities.ts";
import type { OpenBudget } from "../activities/contract/limits.ts";
import type { WaitEnd } from "../activities/contract/waits.ts";
import type { QuestionFacts, Settlement } from "../activities/contract/questions.ts";

export interface OpenQuestion extends QuestionFacts {
  /** The index of its call in the step; absent if it belongs to no call. */
  readonly index?: number;
  readonly askedAtMs: number;
  /** Set for a question about a limit. */
  readonly budget?: OpenBudget;
  settlement: Settlement | undefined;
  /** The database does not have it any more: it is asked again. */
  isGone?: true;
}

/** A question that does not block: its call has gone on. It belongs to the run, over all its steps. */
export interface LaterQuestion extends OpenQuestion {
  readonly step: number;
  readonly index: number;
}

/** The questions of a step. */
export interface Asking {
  open: OpenQuestion[];
  /** How many calls of the step do not wait for a person. */
  busy: number;
  /** How many questions are being stored: people may read them before the run knows that they are stored. */
  storing: number;
  /** How many messages people have sent so far. */
  messages: number;
  /** The run moves to another worker version: its questions stay open for the run that continues it. */
  moves: boolean;
  /** While there are only questions: ends before an answer is written. */
  idle: Promise<void> | undefined;
}

/** The wait of a run, while it waits. */
export interface OpenWait {
  /** For people, at most 60 characters; empty if the history may not have it. */
  readonly about: string;
  readonly startedAtMs: number;
  /** Its latest end, in ms since 1970. */
  readonly untilMs: number | undefined;
  readonly waitsFor: "time" | "process" | "person";
  /** What ends it early, as it comes; messages and answers are in the queue. */
  ends: { process?: true; woken?: true };
}

/** Of the message with which an answer to a question that does not block reaches the model. */
const ANSWER = "answer-";
export const toAnswerId = (question: string): string => `${ANSWER}${question}`;

/**
 * What ended a wait before its time: of several at once, the first in the order of `WAIT_ENDS`.
 * @param queued ids of the messages in the queue, answers among them
 */
export function earlyEnd(queued: readonly string[], { ends }: Pick<OpenWait, "ends">): WaitEnd | undefined {
  if (queued.some((id) => !id.startsWith(ANSWER))) return "message";
  if (queued.length > 0) return "answer";
  if (ends.process) return "process";
  return ends.woken ? "woken" : undefined;
}

/** A call of a step that waited for people when its run moved to another worker version. */
export interface WaitingCall {
  readonly call: CallFacts;
  /** Its index in the step. */
  readonly index: number;
  /** All calls have their results, and this one's question is about what they were refused. */
  readonly about?: "egress";
  /** Its question was asked, and may have been answered since. */
  readonly asked?: { readonly settlement?: Settlement };
}

/** Ends the waits of a run that moves to another worker version. Not a failure. */
export class MovesOn extends Error {
  override readonly name = "MovesOn";
}

/** @param waiting calls whose questions this run inherits from another: people may answer them before this run has asked */
export const createAsking = (waiting: readonly WaitingCall[] = []): Asking => ({
  open: [],
  busy: 0,
  storing: waiting.filter(({ asked }) => asked !== undefined).length,
  moves: false,
  messages: 0,
  idle: undefined,
});

/** The questions that wait for an answer. */
export const unanswered = ({ open }: Asking): OpenQuestion[] =>
  open.filter(({ settlement }) => settlement === undefined);

/** The two largest units: `2 d 3 h`. */
export function lasted(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const units: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3_600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = units.findIndex(([count]) => count > 0);
  if (first === -1) return "0 s";
  return units
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}

/**
 * Whether the open questions can be carried to another worker version. Questions of MCP servers and about limits are answered on
 * the version that asked them.
 */
export const mayMove = (asking: Asking): boolean =>
  unanswered(asking).every(({ kind }) => kind !== "mcp" && kind !== "budget");

/**
 * What a run carries over from a step that it leaves unfinished: the calls, with the answers that arrived meanwhile, and whether a
 * person interrupted them since. Empty if it leaves none.
 */
export function carryWaiting(
  { open }: Pick<Asking, "open">,
  calls: readonly WaitingCall[],
  interrupting: boolean,
): { readonly waitingCalls?: readonly WaitingCall[]; readonly interrupting?: boolean } {
  if (calls.length === 0) return {};
  const waitingCalls = calls.map((waiting): WaitingCall => {
    const question = open.find(({ index }) => index === waiting.index);
    const { call, index, about } = waiting;
    return {
      call,
      index,
      about,
      asked: question && { settlement: question.settlement },
    };
  });
  return { waitingCalls, interrupting };
}
