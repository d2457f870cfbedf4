/** Signals, updates and queries of a session: names are part of the public contract. */
import { defineQuery, defineSignal, defineUpdate } from "@temporalio/workflow";
import type { SessionStatus, StepUsage } from "../activities/contract/activities.ts";
import type { Guidance } from "../activities/contract/guidance.ts";
import type { DeliveryOrder } from "../activities/contract/delivery.ts";
import type { Limit } from "../activities/contract/limits.ts";
import type { AnswerMessage, QuestionKind } from "../activities/contract/questions.ts";
import type { UserPart } from "../activities/contract/message.ts";
import type { WaitingCall } from "./asking.ts";

/** A message as it is sent. `id` is the sender's, for telling duplicates; text beyond 16 KB goes as a blob. */
export interface GuidanceMessage {
  readonly id?: string;
  readonly text?: string;
  readonly parts?: readonly UserPart[];
  /** Who says it, for other people. */
  readonly by?: string;
}

export interface QueuedReply {
  readonly queued: boolean;
  /** From 1: how many messages are waiting, this one included. */
  readonly position: number;
  /** The run is ending and will not read it: it is kept for the session's next run. */
  readonly waitsForNextRun?: true;
}

/** Which question the answer was taken for. */
export interface AnswerReply {
  readonly question: string;
}

/** A question that is open: its text at most 200 characters. */
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

/** What the workflow knows without asking anybody; everything else is in Postgres. */
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
}

/** From the Web UI a bare string is accepted too. */
export const guidanceSignal = defineSignal<[GuidanceMessage | string]>("guidance");
export const interruptSignal = defineSignal<[(GuidanceMessage | string)?]>("interrupt");
export const compactSignal = defineSignal<[(CompactRequest | string)?]>("compact");
export const undoCompactionSignal = defineSignal<[]>("undoCompaction");
export const answerSignal = defineSignal<[AnswerMessage | string]>("answer");
export const answerQuestionUpdate = defineUpdate<AnswerReply, [AnswerMessage]>("answerQuestion");
export const sendGuidanceUpdate = defineUpdate<QueuedReply, [GuidanceMessage]>("sendGuidance");
/** Takes a message back that waits: `parked` if the sender has done so in Postgres already. */
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
  /** The schedule that has its task and its settings. */
  readonly schedule?: string;
  /** First message of a session that is taken up again. */
  readonly guidance?: readonly Guidance[];
  /** A session that has ended delivers its work, and ends as it had. */
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
  /** Client ids seen lately, newest last. */
  readonly seenIds: readonly string[];
  readonly step: number;
  readonly steps: number;
  /** That a person gave on top of the limit. Absent means none. */
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
  /** A round was made and no step since. Absent means no. */
  readonly compacted?: true;
  /** How often the step under way did not fit; how many answers in a row were empty, or unfinished. Absent means 0. */
  readonly overflows?: number;
  readonly emptyAnswers?: number;
  readonly unfinished?: number;
  /** How many answers were not by the schema; what was wrong with the last one, which the next step begins with. */
  readonly mismatches?: number;
  readonly mismatch?: string;
  /** USD so far, if a limit was set; which model steps in, and that it is asked next. Absent means none. */
  readonly costUsd?: number;
  readonly fallback?: { readonly index: number; readonly sinceMs: number };
  readonly switched?: "fallback" | "return";
  /** When the commits were last pushed, and what was delivered last. Absent means never. */
  readonly pushedAtMs?: number;
  readonly delivered?: string;
  /** What is left of a step that waited for people alone. Absent means nothing. */
  readonly waitingCalls?: readonly WaitingCall[];
  /**
   * Of such a step: whether a person interrupted it, which the run that left it could not do any more. Absent in what older runs
   * carried: then one that comes before the session is open is forgotten, as it was when they were recorded.
   */
  readonly interrupting?: boolean;
  /** The version of the workers that a run left for another one, by continuing as new. Absent means none. */
  readonly leftVersion?: string;
  /** When the deadline is, in ms since 1970. Absent means none. */
  readonly deadlineAtMs?: number;
  /** Asked for by a person and not done yet. */
  readonly compactRequest?: CompactRequest;
  readonly undoRequests?: readonly string[];
  readonly context: { readonly used: number; readonly estimated: boolean; readonly prunable: number };
  readonly usage: StepUsage & { readonly calls: number };
}
