/** The library's inputs and results. Names and fields are only ever added. */
import type { AnswerMessage } from "../../activities/contract/questions.ts";
import type { EventType, SessionEvent } from "../../activities/store/event.ts";
import type { ListedQuestion } from "../../activities/store/questions.ts";
import type { CancelledRun, Interrupted } from "../sessions/stop-session.ts";
import type { ContextReport } from "../../activities/context/context-report.ts";
import type { AttachmentSource } from "../sessions/attachments.ts";
import type { Undone } from "../sessions/compact-session.ts";
import type { Retried } from "../sessions/retry-session.ts";
import type { Answered } from "../sessions/send-answer.ts";
import type { Sent } from "../sessions/guidance.ts";
import type { CallResult } from "../sessions/session-export.ts";
import type { Started } from "../sessions/start-session.ts";
import type { StartOptions } from "./start-options.ts";
import type { Batches, Schedules } from "./batches.ts";
import type { SessionStatusDocument } from "../sessions/status-document.ts";

/** Each option is named after an environment variable, which is its default. */
export interface ConnectOptions {
  /** `DATABASE_URL` */
  readonly databaseUrl?: string;
  /** `TEMPORAL_ADDRESS`: host:port. Namespace, TLS and key come from Temporal's own configuration. */
  readonly temporalAddress?: string;
  /** `LONGHAUL_TASK_QUEUE` */
  readonly taskQueue?: string;
  /** `LONGHAUL_USER`: the acting user, who owns the started sessions and is named in events. */
  readonly user?: string;
  /** `LONGHAUL_MODEL`: the model of new sessions that do not name one. */
  readonly model?: string;
  /** `LONGHAUL_CONFIG`: the configuration file of new sessions. */
  readonly config?: string;
}

export interface SayOptions {
  /** A message with the same id is delivered once. */
  readonly id?: string;
  /** Images and PDFs to show, at most 8 MiB each: paths, or their bytes. They are stored; the signal only names them. */
  readonly images?: readonly AttachmentSource[];
  /** The same, and text files, whose text becomes part of the message, with the file's name. */
  readonly files?: readonly AttachmentSource[];
}

export interface RetryOptions {
  /** The first step to do again; default: the newest that began. */
  readonly fromStep?: number;
  /** Messages that were sent since then are not delivered again. */
  readonly dropMessages?: boolean;
}

export interface ForkOptions {
  /** The first step that is left out; default: none. */
  readonly fromStep?: number;
  /** What to say to the new session. */
  readonly message?: string;
  /** The new session's id. */
  readonly id?: string;
}

/** Exactly one of `text`, `option` and `action`; `text` may go with `deny`. */
export type Answer = AnswerMessage;

/** An event of any kind; `type` says which. See docs/events.md. */
export type Event = { [Type in EventType]: SessionEvent<Type> }[EventType];

/** How a session's run ended. */
export interface SessionEnd {
  readonly status: string;
  readonly result: string;
  readonly lastSeq: number;
  /** The reason, if no event shows it: terminated from outside, or lost. */
  readonly reason: string | undefined;
}

export interface ListOptions {
  /** Default 50. */
  readonly limit?: number;
  readonly status?: "active" | "waiting" | "completed" | "failed" | "cancelled" | "max_steps";
  /** Only the delegates of this session. */
  readonly parent?: string;
  /** Everyone's sessions, and delegates; otherwise only those of `user` and those without an owner. */
  readonly all?: boolean;
}

export interface EventOptions {
  /** Only events after this one; default 0: from the beginning. */
  readonly from?: number;
  /** Ends the iteration early, as leaving the loop does. */
  readonly signal?: AbortSignal;
}

export interface Pulled {
  readonly files: number;
  /** Skipped files: links that lead out of the folder, and names that cannot be written. */
  readonly skipped: readonly string[];
  /** Files that were skipped because Git might run programs that they name. */
  readonly unsafe: readonly string[];
}

export interface SessionDiff {
  /** Number of files. */
  readonly changed: number;
  readonly patch: string;
  /** New files that are in neither, because Git ignores them. */
  readonly ignored: readonly string[];
}

/**
 * Sessions by their id, a prefix of it, or `@last`. A method throws a `ClientError` that says what happened and how
 * to fix it (its `exitCode` is that of the command of the same name), or `ServiceMissing` if a service does not answer.
 */
export interface Longhaul {
  /** Stores a session and starts it; it continues without this process. */
  start(task: string, options?: StartOptions): Promise<Started>;
  /** Sends a message, for a running session's next step or as an ended one's next task. The same `id` is delivered once. */
  say(session: string, text: string, options?: SayOptions): Promise<Sent>;
  /** Takes back a message that no step has delivered. */
  unsay(session: string, message: string): Promise<void>;
  /** Takes back every message that waits. @returns their ids */
  unsayAll(session: string): Promise<string[]>;
  answer(session: string, answer: Answer): Promise<Answered>;
  /** Aborts the current step. The session continues with its queue, then with `text`. */
  interrupt(session: string, text?: string): Promise<Interrupted>;
  /** Ends the run; resolves when the clean-up is complete. */
  cancel(session: string): Promise<CancelledRun>;
  /** Summarises old messages at the next step boundary. `focus`: what the summary must keep in view. */
  compact(session: string, options?: { readonly focus?: string }): Promise<void>;
  /** The messages of the newest compaction round are in view again: at once if the session has ended. */
  undoCompaction(session: string): Promise<Undone>;
  /** The use of the window, by the calculation that starts compaction. Tokens. */
  context(session: string): Promise<ContextReport>;
  /** Goes back to before a step, conversation and files, and continues from there. */
  retry(session: string, options?: RetryOptions): Promise<Retried>;
  /** A new session that continues from before a step of this one, which is unchanged. */
  fork(session: string, options?: ForkOptions): Promise<{ readonly id: string }>;
  status(session: string): Promise<SessionStatusDocument>;
  /** Newest first; delegates only if their parent is named. */
  list(options?: ListOptions): Promise<SessionStatusDocument[]>;
  /** Questions to people, oldest first, from one session and its delegates, or from all sessions. */
  questions(session?: string): Promise<ListedQuestion[]>;
  /** Copies the files, as last saved, into a folder. `force`: overwrites existing files that differ. */
  pull(session: string, folder: string, options?: { readonly force?: boolean }): Promise<Pulled>;
  diff(session: string): Promise<SessionDiff>;
  /** A call by its id, as in the events of it. `stdout` and `stderr` are null if the call's streams were not kept apart. */
  callResult(session: string, call: string): Promise<CallResult>;
  /** `own`: everything; `atif`: the trajectory in a format that other tools read. */
  export(session: string, format?: "own" | "atif"): Promise<object>;
  /**
   * Live events in order, each once, until the session's run ends; the generator returns its outcome. Survives restarts of
   * Postgres and Temporal. To resume in another process, pass the last `seq` as `from`.
   */
  events(session: string, options?: EventOptions): AsyncGenerator<Event, SessionEnd | undefined>;
  readonly batches: Batches;
  readonly schedules: Schedules;
  /** Closes the connections; sessions continue. */
  close(): Promise<void>;
}
