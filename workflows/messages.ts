/** Signals, updates and queries of a session: names are part of the public contract. */
import { defineQuery, defineSignal, defineUpdate } from "@temporalio/workflow";
import type { SessionStatus, StepUsage } from "../activities/contract/activities.ts";
import type { AnswerMessage, QuestionKind } from "../activities/contract/questions.ts";
import type { UserPart } from "../activities/contract/message.ts";

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

/** A waiting message with its beginning; text and time are empty if an earlier run received it. */
interface QueuedView {
  readonly id: string;
  readonly text: string;
  readonly queuedAt: string;
}

/** What the workflow itself knows; everything else is in Postgres. */
export interface SessionView {
  readonly status: SessionStatus;
  readonly phase: string;
  readonly step: number;
  readonly maxSteps: number;
  readonly epoch: number;
  readonly model: string;
  readonly queue: readonly QueuedView[];
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
/** Withdraws a waiting message. */
export interface WithdrawnMessage {
  readonly id: string;
}

export const withdrawMessageUpdate = defineUpdate<void, [WithdrawnMessage]>("withdrawMessage");
/** Ends the wait that the model asked for, without a message. Refused if the run does not wait. */
export const wakeUpdate = defineUpdate<void, []>("wake");
export const statusQuery = defineQuery<SessionView>("status");
export const queueQuery = defineQuery<readonly QueuedView[]>("queue");

/** Name under which the workflow is registered. */
export const WORKFLOW_TYPE = "codingAgent";
