/**
 * What the workflow and the activities say to each other. Types only: nothing of this is there at run time.
 *
 * Every payload is ids and small facts (invariant 1): transcript, tool output and summaries stay in Postgres.
 * The session is never named: its id is the workflow's id, which each activity reads from its own context.
 */
import type {
  CompactionFacts,
  PruneFacts,
  SummarizeInput,
  UndoCompactionInput,
  UndoneFacts,
} from "./compaction-facts.ts";
import type { ContextSize } from "./context-size.ts";
import type { DeliveryState, FetchedRepository, Publication, PublishInput } from "./delivery.ts";
import type { Guidance } from "./guidance.ts";
import type { Limit } from "./limits.ts";
import type { OpenDelegateInput, OpenedDelegate, SettledDelegate, SettleDelegateInput } from "./delegates.ts";
import type { MessageKind } from "./message.ts";
import type { AskBudgetInput, OpenBudget } from "./budget-question.ts";
import type {
  AskedBudget,
  AskedPerson,
  NotifyInput,
  SettleBudgetInput,
  SettledQuestion,
  SettleQuestionInput,
} from "./questions.ts";
import type { AnnounceQueuedInput } from "./queued-message.ts";
import type { Precedence } from "./precedence.ts";
import type { RunPolicy } from "./run-policy.ts";
import type { RunToolInput, ToolFacts } from "./tool-facts.ts";

export type * from "./compaction-facts.ts";
export type * from "./tool-facts.ts";

export type SessionStatus = "active" | "waiting" | "completed" | "failed" | "cancelled" | "max_steps";

export interface OpenSessionInput {
  /** The task, if the session was not prepared by the client (started from Temporal's own tools). */
  readonly task?: string;
  /** The schedule that has its task and its settings. */
  readonly schedule?: string;
  /** First run id of the chain: kept by reset and continue-as-new. */
  readonly chain: string;
  /** Steps finished, of a run that continues an earlier one as new. */
  readonly continuedStep?: number;
  /** Compaction rounds done by then. */
  readonly continuedRound?: number;
  /** The run that it continues. */
  readonly continuedFrom?: string;
  /** It continues with the calls of the last step that have no results yet, and with their questions. */
  readonly keepsCalls?: true;
  /** That the run has in Temporal, whatever the session's settings say. */
  readonly precedence?: Precedence;
}

export interface OpenedSession {
  readonly policy: RunPolicy;
  readonly epoch: number;
  /** Steps finished before this run: the next step is this + 1. */
  readonly step: number;
  /** What is known of the context's size before the first call: estimates, in tokens. */
  readonly context: ContextSize;
  /** Highest compaction round so far. */
  readonly round: number;
  /** Resumed so late that the provider's cache has expired: the next request is billed in full. */
  readonly cold?: boolean;
  /** USD of the session so far, if a person is asked at its limit: a run may begin there. */
  readonly costUsd?: number;
  /** Begun or taken up when nothing is left of what it may cost: it ends before it pays. */
  readonly isSpent?: true;
  /** Messages of an earlier run wait in Postgres. */
  readonly parked?: boolean;
  /** The sandbox of an earlier run, if it is on a host with a queue of its own. */
  readonly sandbox?: { readonly container: string; readonly taskQueue: string };
}

export interface SandboxFacts {
  /** Task queue of the host that has the container; absent means the workflow's own. */
  readonly taskQueue?: string;
  readonly container: string;
}

export interface ModelStepInput {
  readonly step: number;
  /** The tools of the session's MCP servers are taken first, if they were not yet. */
  readonly takeTools?: true;
  /** Messages drained at this boundary, in order. */
  readonly guidance: readonly Guidance[];
  /** True while messages parked in Postgres wait: they come before `guidance`. */
  readonly parked?: boolean;
  /** Our own note to the model before this step. */
  readonly note?: {
    readonly kind: Extract<MessageKind, "nudge" | "wrap-up" | "notice">;
    readonly text: string;
  };
  /** Number of compactions that are still in force after a reset to this point. */
  readonly round?: number;
  /** No tools: the model is to summarise its progress. */
  readonly wrapUp?: boolean;
  /** An answer to this step was empty, or its request did not fit: the step is asked again. */
  readonly again?: true;
  /** Which model of `fallback` is asked, from 1; absent means the session's own. */
  readonly fallback?: number;
  /** Another model is there to step in: a failure that would end the run is an outcome then. */
  readonly hasFallback?: true;
  /** Why another model is asked than at the step before. */
  readonly switched?: "fallback" | "return";
  /** The model that the run's policy is for: if the session has another by now, the answer brings its policy. */
  readonly model?: string;
}

/** One requested tool call, small enough for history. */
export interface CallFacts {
  readonly name: string;
  /** What it is about, at most 60 characters, masked: a command's first line, a path. */
  readonly about: string;
  /** Who performs it, if not a tool of the worker. */
  readonly by?: "person" | "delegate";
  /** A person is asked before it is run. */
  readonly needsApproval?: true;
  /** No other call of its step runs at the same time. */
  readonly alone?: true;
}

/** What is reported with every outcome of a step. */
export interface StepNews {
  /** Messages that wait in Postgres for the next step: more had come than one step takes. */
  readonly parked?: number;
  /** A person gave the session another model while one stepped in for it: none does any more. */
  readonly isOwn?: true;
  /** What is new of it: the session was given another model, its servers' tools, or as a delegate another limit. */
  readonly policy?: Partial<Pick<RunPolicy, "model" | "budget" | "prefix" | "takesTools" | "maxCostUsd">>;
}

export type ModelStepFacts = StepNews & StepOutcome;

export type StepOutcome =
  | {
      readonly kind: "answered";
      readonly calls: readonly CallFacts[];
      readonly finish: string;
      /** Of a last answer that is not JSON by the session's schema: what is wrong with it, bounded and masked. */
      readonly mismatch?: string;
      readonly usage: StepUsage;
      /** USD of the whole session so far, if a limit was set and every price is known. */
      readonly costUsd?: number;
      /** USD of this step alone, if no limit was set and its price is known. */
      readonly stepCostUsd?: number;
      readonly context: ContextSize;
      readonly epoch: number;
    }
  /** The model's provider failed permanently, or repeatedly, and another model may step in. Nothing was stored. */
  | { readonly kind: "unavailable"; readonly reason: string; readonly epoch: number }
  /** The request does not fit, by our count (nothing was sent) or by the provider's word. Nothing was stored. */
  | {
      readonly kind: "overflow";
      readonly by: "estimate" | "provider";
      readonly context: ContextSize;
      readonly epoch: number;
    }
  /** The person interrupted; what was said so far is kept, marked. */
  | { readonly kind: "interrupted"; readonly context: ContextSize; readonly epoch: number }
  /** Neither words nor calls came; nothing was stored. */
  | { readonly kind: "empty"; readonly usage: StepUsage; readonly epoch: number };

/** One call's bill, in tokens. `cached` and `cacheWrite` are parts of `input`, `reasoning` part of `output`. */
export interface StepUsage {
  readonly input: number;
  readonly output: number;
  /** Read from the provider's cache. */
  readonly cached: number;
  /** Written to it, if that has a price of its own. */
  readonly cacheWrite?: number;
  readonly reasoning: number;
}

export interface WorkspaceFacts {
  readonly changed: number;
  readonly bytes: number;
}

/**
 * Of a run that ends before its `openSession` returned: it does not know where the session stands, so it changes nothing
 * that other runs made. Only a session that no run ever had, and one that this run took over or continues as new, is
 * ended by it.
 */
export interface NeverOpened {
  /** The run that it continues as new. */
  readonly continuedFrom?: string;
}

export interface CloseSandboxInput {
  readonly step: number;
  readonly neverOpened?: NeverOpened;
}

export interface CloseSessionInput {
  readonly step: number;
  readonly neverOpened?: NeverOpened;
  readonly status: Exclude<SessionStatus, "active" | "waiting">;
  /** Of `max_steps`: which limit it was; absent means the steps. */
  readonly limit?: Exclude<Limit, "steps">;
  /** Of a failure: its type and message, bounded. */
  readonly error?: { readonly type: string; readonly message: string };
  /** Why the sandbox was not closed: the last files may be in no save, the container may be there still. */
  readonly notClosed?: string;
  /** Why the work was not delivered, if `publish` could not say so itself. */
  readonly notDelivered?: string;
}

/** What a finished run returns, and what the Web UI shows as its result. */
export interface ClosedSession {
  readonly status: SessionStatus;
  /** Which limit ended it, of `max_steps`; absent means the steps. */
  readonly limit?: Exclude<Limit, "steps">;
  readonly steps: number;
  readonly rounds: number;
  /** The model's last words, at most 2,000 characters. */
  readonly result: string;
  readonly usage: StepUsage & { readonly calls: number };
  /** Of a session that works on a repository. */
  readonly delivery?: DeliveryState;
}

export interface AgentActivities {
  /** Opens or resumes the session; resolves its policy. */
  openSession(input: OpenSessionInput): Promise<OpenedSession>;
  /** Makes sure that the session's container runs and its workspace is there. */
  openSandbox(input: { readonly step: number }): Promise<SandboxFacts>;
  /** Puts a repository's files into the sandbox, as the session's first. */
  fetchRepository(input: { readonly step: number }): Promise<FetchedRepository>;
  /** Runs the project's set-up in the sandbox, if that has not been done. */
  setUpSandbox(input: { readonly step: number }): Promise<void>;
  /** Pushes the session's branch, or opens its pull request. */
  publish(input: PublishInput): Promise<Publication>;
  /** Writes waiting messages to Postgres, in order, when there are too many to carry. */
  parkGuidance(input: { readonly items: readonly Guidance[] }): Promise<void>;
  /** Tells watchers of messages that wait for the next step. */
  announceQueued(input: AnnounceQueuedInput): Promise<void>;
  /** Drains guidance, builds the request, asks the model and stores its answer. */
  modelStep(input: ModelStepInput): Promise<ModelStepFacts>;
  /** Runs one tool call through the ledger and stores its result. */
  runTool(input: RunToolInput): Promise<ToolFacts>;
  /** Asks a person what a call wants to know, or whether it may be run. */
  askPerson(input: RunToolInput): Promise<AskedPerson>;
  /** Writes how a question ended, and the result of its call if it has one by that. */
  settleQuestion(input: SettleQuestionInput): Promise<SettledQuestion>;
  /** Asks a person whether the session may exceed a limit. */
  askBudget(input: AskBudgetInput): Promise<AskedBudget>;
  /** Writes how that ended. @returns the limit that holds now; undefined if the run is to end */
  settleBudget(input: SettleBudgetInput): Promise<{ readonly of?: number }>;
  /** Says that the session waits for nothing but answers; with a question about a limit, at the boundary before its step. */
  markWaiting(input: { readonly step: number; readonly budget?: OpenBudget }): Promise<void>;
  /** Creates the session that does a call of `delegate`, with the current files. */
  openDelegate(input: OpenDelegateInput): Promise<OpenedDelegate>;
  /** Stores the result of a delegate that has ended, and takes its files over. */
  settleDelegate(input: SettleDelegateInput): Promise<SettledDelegate>;
  /** Tells the operator's address of it. */
  notify(input: NotifyInput): Promise<void>;
  /** One compaction round, in one transaction. */
  summarize(input: SummarizeInput): Promise<CompactionFacts>;
  /** Undoes the newest compaction. */
  undoCompaction(input: UndoCompactionInput): Promise<UndoneFacts>;
  /** Hides old tool results from the view. */
  prune(input: { readonly step: number }): Promise<PruneFacts>;
  /** Saves what changed in the workspace. */
  saveWorkspace(input: { readonly step: number }): Promise<WorkspaceFacts>;
  /** Saves the workspace and removes the container, `afterMs` from now, for as long as the session waits. */
  parkSandbox(input: {
    readonly step: number;
    readonly afterMs: number;
    readonly budget?: OpenBudget;
  }): Promise<WorkspaceFacts>;
  /** Saves the workspace a last time and removes the container. */
  closeSandbox(input: CloseSandboxInput): Promise<WorkspaceFacts>;
  /** Gives every open call a result and writes the outcome. */
  closeSession(input: CloseSessionInput): Promise<ClosedSession>;
}
