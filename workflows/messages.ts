/** Signals, updates and queries of a session: names are part of the public contract. */
import { defineQuery, defineSignal, defineUpdate } from "@temporalio/workflow";
import type { SessionStatus, StepUsage } from "../activities/contract/activities.ts";
import type { Guidance } from "../activities/contract/guidance.ts";
import type { DeliveryOrder } from "../activities/contract/delivery.ts";
import type { Limit } from "../activities/contract/limits.ts";
import type { AnswerMessage, QuestionKind } from "../activities/contract/questions.ts";
import type { UserPart } from "../activities/contract/message.ts";
import type { WaitingCall } from "./asking.ts";

/** A message as it is sent. `id` is the sender's, to detect duplicates; text beyond 16 KB goes as a blob. */
export interface GuidanceMessage {
  readonly id?: string;
  readonly text?: string;
  readonly parts?: readonly UserPart[];
  /** The author's name, for other people. */
  readonly by?: string;
}

export interface QueuedReply {
  readonly queued: boolean;
  /** From 1: how many messages are waiting, this one included. */
  readonly position: number;
  /** The run is ending and will not read the message, which is kept for the session's next run. */
  readonly waitsForNextRun?: true;
}

/** Which question the answer was taken for. */
export interface AnswerReply {
  readonly question: string;
}

/** An open question, with at most 200 characters of its text. */
interface QuestionView {
  readonly id: string;
  readonly kind: QuestionKind;
  /** ISO time. */
  readonly asked: string;
  readonly text: string;
}

export interface CompactRequest {
  readonly focus?: string;
}

/** What the workflow itself knows; everything else is in Postgres. */
export interface SessionView {
  readonly status: SessionStatus;
  readonly phase: string;
  readonly step: number;
  readonly maxSteps: number;
  readonly epoch: number;
  readonly model: string;
  readonly queue: readonly { readonly id: string; readonly text: string; readonly queuedAt: string }[];
  readonly questions: readonly QuestionView[];
  /** A person's interrupt is on its way to the step in flight. Absent means no. */
  readonly interrupting?: true;
  readonly context: { readonly used: number; readonly limit: number; readonly estimated: boolean };
  readonly compactionRounds: number;
  readonly usage: StepUsage & { readonly calls: number };
  /** ISO time. Absent means none. */
  readonly deadline?: string;
  /** ISO time until which it waits for the end of a limit of the model. Absent means that it does not. */
  readonly waitsUntil?: string;
}

/** From the Web UI a bare string is accepted too. */
export const guidanceSignal = defineSignal<[GuidanceMessage | string]>("guidance");
export const interruptSignal = defineSignal<[(GuidanceMessage | string)?]>("interrupt");
export const compactSignal = defineSignal<[(CompactRequest | string)?]>("compact");
export const undoCompactionSignal = defineSignal<[]>("undoCompaction");
export const answerSignal = defineSignal<[AnswerMessage | string]>("answer");
/** For a run that waits for an answer to a question that Postgres does not have, as after a restore from an older copy. */
export const askAgainSignal = defineSignal<[]>("askAgain");
export const answerQuestionUpdate = defineUpdate<AnswerReply, [AnswerMessage]>("answerQuestion");
export const sendGuidanceUpdate = defineUpdate<QueuedReply, [GuidanceMessage]>("sendGuidance");
/** Withdraws a waiting message; `parked` if the sender has already withdrawn it in Postgres. */
export interface WithdrawnMessage {
  readonly id: string;
  readonly parked?: true;
}

export const withdrawMessageUpdate = defineUpdate<void, [WithdrawnMessage]>("withdrawMessage");
export const statusQuery = defineQuery<SessionView>("status");
export const queueQuery = defineQuery<readonly Guidance[]>("queue");

/** Name under which the workflow is registered. */
export const WORKFLOW_TYPE = "codingAgent";

/** Carried from run to run of one session. */
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
    };
  };
  /** What an earlier run of this session hands over (continue-as-new). */
  readonly carried?: CarriedState;
}

export interface CarriedState {
  readonly queue: readonly Guidance[];
  readonly parked: number;
  /** Recently seen client ids, newest last. */
  readonly seenIds: readonly string[];
  readonly step: number;
  /** How many calls of that step have their results. Absent means none, or what older runs carried. */
  readonly results?: number;
  readonly steps: number;
  /** Steps that a person granted on top of the limit. Absent means none. */
  readonly moreSteps?: number;
  /** A person said so. Absent means no. */
  readonly endsAtLimit?: true;
  readonly round: number;
  readonly breaker: number;
  readonly futile?: number;
  readonly roundStep?: number;
  readonly recentCalls: readonly string[];
  readonly nudged: boolean;
  /** The next step begins with the hint. Absent means no, as in what older runs carried. */
  readonly nudge?: true;
  /** A compaction was made and no step since. Absent means no. */
  readonly compacted?: true;
  /** How often the current step's request did not fit; how many answers in a row were empty, or unfinished. Absent means 0. */
  readonly overflows?: number;
  readonly emptyAnswers?: number;
  readonly unfinished?: number;
  /** How many answers did not match the schema; what was wrong with the last one, with which the next step begins. */
  readonly mismatches?: number;
  readonly mismatch?: string;
  readonly notice?: string;
  readonly writtenCalls?: number;
  readonly cuts?: number;
  /** USD so far, if a limit was set; which fallback model is used, and that it is asked next. Absent means none. */
  readonly costUsd?: number;
  readonly fallback?: { readonly index: number; readonly sinceMs: number };
  readonly switched?: "fallback" | "return";
  /** When the commits were last pushed, and what was delivered last. Absent means never. */
  readonly pushedAtMs?: number;
  readonly delivered?: string;
  /** The open calls of a step that only waited for people. Absent means none. */
  readonly waitingCalls?: readonly WaitingCall[];
  /**
   * Whether a person interrupted such a step, which the run that left it could no longer act on. Absent in what older runs
   * carried: then an interrupt that arrives before the session is open is forgotten, as it was when they were recorded.
   */
  readonly interrupting?: boolean;
  /** The worker version that a run left for another one, by continuing as new. Absent means none. */
  readonly leftVersion?: string;
  /** When the deadline is, in ms since 1970. Absent means none. */
  readonly deadlineAtMs?: number;
  /** Requests of people that are not done yet. */
  readonly compactRequest?: CompactRequest;
  /** Waits for the end of a limit. Absent means none. */
  readonly limits?: { readonly sinceMs: number; readonly count: number; readonly untilMs: number };
  readonly undoRequests?: readonly string[];
  readonly context: { readonly used: number; readonly estimated: boolean; readonly prunable: number };
  readonly usage: StepUsage & { readonly calls: number };
}
