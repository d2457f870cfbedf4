/** The library's inputs and results. Names and fields are only ever added. */
import type { AnswerMessage } from "../../activities/contract/questions.ts";
import type { EventType, SessionEvent } from "../../activities/store/event.ts";
import type { ListedQuestion } from "../../activities/store/questions.ts";
import type { CancelledRun } from "../sessions/cancel-session.ts";
import type { Interrupted } from "../sessions/interrupt-session.ts";
import type { Answered } from "../sessions/send-answer.ts";
import type { Sent } from "../sessions/send-guidance.ts";
import type { Started } from "../sessions/start-session.ts";
import type { StartOptions } from "./start-options.ts";
import type { Batches, Schedules } from "./batches.ts";
import type { SessionStatusDocument } from "../sessions/status-document.ts";

/** Each is named after its variable, which is the default. */
export interface ConnectOptions {
  /** `DATABASE_URL` */
  readonly databaseUrl?: string;
  /** `TEMPORAL_ADDRESS`: host:port. Namespace, TLS and key come from Temporal's own configuration. */
  readonly temporalAddress?: string;
  /** `LONGHAUL_TASK_QUEUE` */
  readonly taskQueue?: string;
  /** `LONGHAUL_USER`: who acts. Owns the started sessions, and is named in events. */
  readonly user?: string;
  /** `LONGHAUL_MODEL`: of new sessions without a model. */
  readonly model?: string;
  /** `LONGHAUL_CONFIG`: the configuration file of new sessions. */
  readonly config?: string;
}

export interface SayOptions {
  /** The same id is delivered once. */
  readonly id?: string;
  /** Images and PDFs to show, at most 8 MiB each: paths, or their bytes. They are stored, and only named in the signal. */
  readonly images?: readonly (string | { readonly name: string; readonly bytes: Uint8Array })[];
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
  /** Why, if no event shows it: terminated from outside, lost. */
  readonly reason: string | undefined;
}

export interface ListOptions {
  /** Default 50. */
  readonly limit?: number;
  readonly status?: "active" | "waiting" | "completed" | "failed" | "cancelled" | "max_steps";
  /** Only the delegates of this session. */
  readonly parent?: string;
  /** All persons' sessions, and delegates; otherwise those of `user` and those without an owner. */
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
  /** Files that were left out: links that lead out of the folder, names that cannot be written. */
  readonly skipped: readonly string[];
  /** Files that were left out because Git might run programs that they name. */
  readonly unsafe: readonly string[];
}

export interface SessionDiff {
  /** Files. */
  readonly changed: number;
  readonly patch: string;
}

/**
 * Sessions by their id, a prefix of it, or `@last`. A method throws a `ClientError` that says what happened and how
 * to fix it (its `exitCode` is that of the command of the same name), or `ServiceMissing` if one does not answer.
 */
export interface Longhaul {
  /** Stores a session and starts it; it continues without this process. */
  start(task: string, options?: StartOptions): Promise<Started>;
  /** Guides a session: at its next step if it runs, as its next task if it has ended. `id`: the same one is delivered once. */
  say(session: string, text: string, options?: SayOptions): Promise<Sent>;
  /** Takes back a message that no step has delivered. */
  unsay(session: string, message: string): Promise<void>;
  answer(session: string, answer: Answer): Promise<Answered>;
  /** Aborts the step in flight; the session continues with its queue, and with `text` first. */
  interrupt(session: string, text?: string): Promise<Interrupted>;
  /** Ends the run; resolves when it has cleaned up. */
  cancel(session: string): Promise<CancelledRun>;
  status(session: string): Promise<SessionStatusDocument>;
  /** Newest first; delegates only if their parent is named. */
  list(options?: ListOptions): Promise<SessionStatusDocument[]>;
  /** Questions to people, oldest first: of one session and its delegates, or of all. */
  questions(session?: string): Promise<ListedQuestion[]>;
  /** Copies the files, as last saved, into a folder. `force`: overwrites existing files that differ. */
  pull(session: string, folder: string, options?: { readonly force?: boolean }): Promise<Pulled>;
  diff(session: string): Promise<SessionDiff>;
  /** `own`: everything; `atif`: the trajectory in a format of other tools. */
  export(session: string, format?: "own" | "atif"): Promise<object>;
  /**
   * Events in order, each once, live, until the session's run ends; its outcome is the generator's return value. Goes on
   * after restarts of Postgres and Temporal. To resume in another process: `from` the last `seq` that was seen.
   */
  events(session: string, options?: EventOptions): AsyncGenerator<Event, SessionEnd | undefined>;
  readonly batches: Batches;
  readonly schedules: Schedules;
  /** Closes the connections; sessions continue. */
  close(): Promise<void>;
}
