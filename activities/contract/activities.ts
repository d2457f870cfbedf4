/**
 * The inputs and results that the workflow and the activities exchange. Types only: nothing here exists at run time.
 * Every payload is ids and small facts (invariant 1): transcript, tool output and summaries stay in Postgres.
 * Payloads do not name the session: its id is the workflow's id, which each activity reads from its own context.
 */
import type { ContextSize } from "./request-size.ts";
import type { DeliveryState, FetchedRepository, Publication, PublishInput } from "./delivery.ts";
import type {
  Guidance,
  GuidanceDelivery,
  StoredGuidance,
  StoreGuidanceInput,
  WaitingMessage,
} from "./guidance.ts";
import type { Limit, AskBudgetInput, OpenBudget, OverBudgetFacts } from "./limits.ts";
import type {
  OpenDelegateInput,
  OpenedDelegate,
  SettledDelegate,
  SettleDelegateInput,
  RunToolInput,
  ToolFacts,
} from "./calls.ts";
import type { MessageKind } from "./message.ts";
import type {
  AskedBudget,
  AskedPerson,
  NotifyInput,
  SettleBudgetInput,
  SettledQuestion,
  SettleQuestionInput,
} from "./questions.ts";
import type { BeginWaitInput, BegunWait, EndWaitInput } from "./waits.ts";
import type { Precedence, RunPolicy } from "./run-policy.ts";
import type { VerifiedWork, VerifyInput, VerifyOutcome } from "./verify.ts";

export type * from "./calls.ts";

export type SessionStatus = "active" | "waiting" | "completed" | "failed" | "cancelled" | "max_steps";

export interface OpenSessionInput {
  /** The task, if the session was not prepared by the client (started from Temporal's own tools). */
  readonly task?: string;
  /** The schedule that holds the session's task and settings. */
  readonly schedule?: string;
  /** First run id of the chain, unchanged by reset and continue-as-new. */
  readonly chain: string;
  /** Steps finished by the run that this one continues as new. */
  readonly continuedStep?: number;
  /** Compaction rounds done by that run. */
  readonly continuedRound?: number;
  /** Id of the run that this one continues. */
  readonly continuedFrom?: string;
  /** Messages that arrived before the session was opened, in order; the rest is stored afterwards. */
  readonly arrived?: readonly Guidance[];
  /** This run continues with the calls of the last step that have no results yet, and with their questions. */
  readonly keepsCalls?: true;
  /** The run's precedence in Temporal, whatever the session's settings say. */
  readonly precedence?: Precedence;
}

export interface OpenedSession {
  readonly policy: RunPolicy;
  readonly epoch: number;
  /** Steps finished before this run: the next step is this + 1. */
  readonly step: number;
  /** Estimated context size before the first call, in tokens. */
  readonly context: ContextSize;
  /** Highest compaction round so far. */
  readonly round: number;
  /** Resumed so late that the provider's cache has expired: the next request is billed in full. */
  readonly isCacheExpired?: true;
  /** The newest answer is another model's, so nothing of the next request is in the provider's cache. */
  readonly otherModel?: true;
  /** USD of the session so far, if a person is asked at its limit: a run may start at that limit. */
  readonly costUsd?: number;
  /** The cost limit was already reached when the run was opened or resumed: the run ends before it pays for anything. */
  readonly isSpent?: true;
  /** A delegate that has given its last answer already, and to which nobody has written since. */
  readonly isDone?: true;
  /** Of `arrived`, the ids of those that were delivered or withdrawn before. */
  readonly over?: readonly string[];
  /** The oldest messages that wait in Postgres. */
  readonly waiting?: readonly WaitingMessage[];
  /** The sandbox of an earlier run, if it is on a host with its own queue. */
  readonly sandbox?: { readonly container: string; readonly taskQueue: string };
}

export interface SandboxFacts {
  /** Task queue of the host that has the container; absent means the workflow's own. */
  readonly taskQueue?: string;
  readonly container: string;
}

export interface ModelStepInput {
  readonly step: number;
  /** Load the tools of the session's MCP servers first, if they are not loaded yet. */
  readonly takeTools?: true;
  /** How many calls of the step before have their results. */
  readonly results?: number;
  /** Ids of the messages that the run knew when it asked: later ones wait for the next step. */
  readonly guidance?: readonly string[] | undefined;
  /** Our own note to the model before this step. */
  readonly note?: {
    readonly kind: Extract<MessageKind, "warning" | "wrap-up" | "notice">;
    readonly text: string;
  };
  /** Number of compactions that still apply after a reset to this point. */
  readonly round?: number;
  /** No tools are offered: the model must summarise its progress. */
  readonly wrapUp?: boolean;
  /** An earlier answer to this step was empty, or its request did not fit: the model is asked again. */
  readonly again?: true;
  /** Which model of `fallback` to ask, from 1; absent means the session's own. */
  readonly fallback?: number;
  /** Another model can step in, so a failure that would end the run is returned as an outcome. */
  readonly hasFallback?: true;
  /** Why this step asks another model than the step before. */
  readonly switched?: "fallback" | "return";
  /** The model that the run's policy was made for: if the session has another since, the answer contains its policy. */
  readonly model?: string;
}

/** One requested tool call, small enough for history. */
export interface CallFacts {
  readonly name: string;
  /** What the call is about, at most 60 characters, masked: a command's first line, a path. */
  readonly about: string;
  /** Who performs the call, if not a tool of the worker. */
  readonly by?: "person" | "delegate" | "wait";
  /** A person is asked before the call is run. */
  readonly needsApproval?: true;
  /** No other call of its step runs at the same time. */
  readonly alone?: true;
}

/** Reported with every outcome of a step. */
export interface StepNews extends GuidanceDelivery {
  /** A person gave the session another model while a fallback was in use: the session's own model is asked from now on. */
  readonly isOwn?: true;
  /** Changes to the policy: another model, the servers' tools, or another limit for a delegate. */
  readonly policy?: Partial<Pick<RunPolicy, "model" | "budget" | "prefix" | "takesTools" | "maxCostUsd">>;
}

export type ModelStepFacts = StepNews & StepOutcome;

export type StepOutcome =
  | {
      readonly kind: "answered";
      readonly calls: readonly CallFacts[];
      readonly finish: string;
      /** Set for a last answer that is not JSON matching the session's schema: what is wrong with it, bounded and masked. */
      readonly mismatch?: string;
      /** Set for a text that is, or ends in, a call that the server did not recognise: the tool's name. */
      readonly wroteCall?: string;
      readonly servedWindow?: number; // In use at the server, if it is smaller than the one assumed.
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
  /** The model's limit is used up, and its provider said when it ends: nothing is asked until then. Nothing was stored. */
  | { readonly kind: "limited"; readonly waitMs: number; readonly epoch: number }
  | OverBudgetFacts
  /** The request does not fit, by our count (nothing was sent) or by the provider's. Nothing was stored. */
  | {
      readonly kind: "overflow";
      readonly by: "estimate" | "provider";
      /** The provider's own words, bounded and masked; and the window that they name, if it is smaller than the one assumed. */
      readonly said?: string;
      readonly servedWindow?: number;
      readonly context: ContextSize;
      readonly epoch: number;
    }
  /** The person interrupted; the partial answer is kept and marked. */
  | { readonly kind: "interrupted"; readonly context: ContextSize; readonly epoch: number }
  /** The model returned neither text nor calls; nothing was stored. `reason`: the provider's own words, bounded and masked. */
  | { readonly kind: "empty"; readonly usage: StepUsage; readonly reason?: string; readonly epoch: number };

/** Usage of one call, in tokens. `cached` and `cacheWrite` are parts of `input`, `reasoning` part of `output`. */
export interface StepUsage {
  readonly input: number;
  readonly output: number;
  /** Tokens read from the provider's cache. */
  readonly cached: number;
  /** Tokens written to the cache, if writing is priced separately. */
  readonly cacheWrite?: number;
  readonly reasoning: number;
}

export interface CheckCommandsInput {
  /** Steps finished. */
  readonly step: number;
  /** As in `ModelStepInput`. */
  readonly round: number;
}

export interface CheckedCommands {
  /** The model has something to read about them: some run, or have ended. */
  readonly isTold: boolean;
}

export interface WorkspaceFacts {
  readonly changed: number;
  readonly bytes: number;
}

/**
 * Sent by a run that ends before its `openSession` returned. Such a run does not know the session's state, so it
 * changes nothing that other runs made. It ends the session only if no run ever had it, or if this run claimed it or
 * continues it as new.
 */
export interface NeverOpened {
  /** Id of the run that this one continues as new. */
  readonly continuedFrom?: string;
}

export interface CloseSandboxInput {
  readonly step: number;
  /** The session may go on later: its sandbox is only stopped, if its settings keep it. */
  readonly mayPark?: true;
  readonly neverOpened?: NeverOpened;
}

export interface CloseSessionInput {
  readonly step: number;
  readonly neverOpened?: NeverOpened;
  readonly status: Exclude<SessionStatus, "active" | "waiting">;
  /** For `max_steps`: which limit was reached; absent means the step limit. */
  readonly limit?: Exclude<Limit, "steps">;
  /** For a budget: which, and until when. */
  readonly limitReason?: string;
  /** For a failure: its type and message, bounded. */
  readonly error?: { readonly type: string; readonly message: string };
  /** Why the sandbox was not closed: the newest files may not be saved, and the container may still exist. */
  readonly notClosed?: string;
  /** Why the work was not delivered, if `publish` could not report it itself. */
  readonly notDelivered?: string;
  /** What the last look at the work came to, if it was verified. */
  readonly verified?: VerifyOutcome;
}

/** What a finished run returns, and what the Web UI shows as its result. */
export interface ClosedSession {
  readonly status: SessionStatus;
  /** For `max_steps`: which limit ended the session; absent means the step limit. */
  readonly limit?: Exclude<Limit, "steps">;
  readonly steps: number;
  readonly rounds: number;
  /** The model's last text, at most 2,000 characters. */
  readonly result: string;
  readonly usage: StepUsage & { readonly calls: number };
  /** Set for a session that works on a repository. */
  readonly delivery?: DeliveryState;
  /** Set if the work was verified. */
  readonly verified?: VerifyOutcome;
  /** Set if the session could not end as the run had: what it was stored as, and why. */
  readonly error?: { readonly type: string; readonly message: string };
  /** The run whose end is stored; absent if none is, and from versions that did not tell. Not in the run's own result. */
  readonly storedFor?: string;
}

export interface AgentActivities {
  /** Opens or resumes the session; resolves its policy. */
  openSession(input: OpenSessionInput): Promise<OpenedSession>;
  /** Ensures that the session's container runs and its workspace is present. */
  openSandbox(input: { readonly step: number }): Promise<SandboxFacts>;
  /** Puts a repository's files into the sandbox as the session's first files. */
  fetchRepository(input: { readonly step: number }): Promise<FetchedRepository>;
  /** Runs the project's set-up in the sandbox, unless it has already run. */
  setUpSandbox(input: { readonly step: number }): Promise<void>;
  /** Runs the commands that decide whether the work is done, once for each round. */
  verifyWork(input: VerifyInput): Promise<VerifiedWork>;
  /** Brings the newest commits of a followed pull request and of its base into the sandbox. */
  refreshCheckout(input: { readonly step: number }): Promise<void>;
  /** Pushes the session's branch, or opens its pull request. */
  publish(input: PublishInput): Promise<Publication>;
  /** Puts messages that have arrived into the queue in Postgres, and announces them to watchers. */
  storeGuidance(input: StoreGuidanceInput): Promise<StoredGuidance>;
  /** Delivers waiting messages, builds the request, asks the model and stores its answer. */
  modelStep(input: ModelStepInput): Promise<ModelStepFacts>;
  /** Runs one tool call through the ledger and stores its result. */
  runTool(input: RunToolInput): Promise<ToolFacts>;
  /** Asks a person the call's question, or whether the call may be run. */
  askPerson(input: RunToolInput): Promise<AskedPerson>;
  /** Stores how a question ended, and the result of its call if that gives it one. */
  settleQuestion(input: SettleQuestionInput): Promise<SettledQuestion>;
  /** Asks a person whether the session may exceed a limit. */
  askBudget(input: AskBudgetInput): Promise<AskedBudget>;
  /** Stores how the limit's question ended. @returns the limit that applies now; undefined if the run must end */
  settleBudget(input: SettleBudgetInput): Promise<{ readonly of?: number }>;
  /** Marks the session as waiting only for answers; with a question about a limit, at the boundary before its step. */
  markWaiting(input: { readonly step: number; readonly budget?: OpenBudget }): Promise<void>;
  /** Creates the session that performs a call of `delegate`, with the current files. */
  openDelegate(input: OpenDelegateInput): Promise<OpenedDelegate>;
  /** Stores the result of a delegate that has ended, and adopts its files. */
  settleDelegate(input: SettleDelegateInput): Promise<SettledDelegate>;
  /** Notifies the operator's address of a question or of the run's end. */
  notify(input: NotifyInput): Promise<void>;
  /** One compaction round, in one transaction. */
  summarize(input: SummarizeInput): Promise<CompactionFacts>;
  /** Undoes the newest compaction. */
  undoCompaction(input: UndoCompactionInput): Promise<UndoneFacts>;
  /** Hides old tool results from the view. */
  prune(input: PruneInput): Promise<PruneFacts>;
  /** Saves what changed in the workspace. */
  saveWorkspace(input: { readonly step: number }): Promise<WorkspaceFacts>;
  /** Looks at the commands in the background when the model has given its last answer. */
  checkCommands(input: CheckCommandsInput): Promise<CheckedCommands>;
  /** Begins a wait that the model asked for, or gives the call its result at once. */
  beginWait(input: BeginWaitInput): Promise<BegunWait>;
  /** Returns once a command that the wait is for has ended. */
  watchSandbox(input: { readonly step: number; readonly index: number }): Promise<void>;
  /** Stores what ended a wait, as its call's result. */
  endWait(input: EndWaitInput): Promise<ToolFacts>;
  /** Saves the workspace and removes the container, `afterMs` from now, for as long as the session waits. */
  parkSandbox(input: {
    readonly step: number;
    readonly afterMs: number;
    readonly budget?: OpenBudget;
  }): Promise<WorkspaceFacts>;
  /** Saves the workspace a last time and removes the container. */
  closeSandbox(input: CloseSandboxInput): Promise<WorkspaceFacts>;
  /** Gives every open call a result and stores the outcome. */
  closeSession(input: CloseSessionInput): Promise<ClosedSession>;
}

export type CompactionTrigger = "threshold" | "overflow" | "manual";

export interface SummarizeInput {
  readonly step: number;
  readonly round: number;
  readonly trigger: CompactionTrigger;
  /** For a manual compaction: what the person wants kept in view. */
  readonly focus?: string;
  /** As in `ModelStepInput`: the view must fit that model's window. */
  readonly fallback?: number;
  /** Write the summary without a model: the last fallback, also used while the breaker is open. */
  readonly deterministic?: boolean;
  /** The run itself waits for a limit's end, so that is returned as an outcome. */
  readonly waitsForLimits?: true;
  /** As in `ModelStepInput`. */
  readonly guidance?: readonly string[] | undefined;
}

/** Waiting messages are delivered before a compaction, so that they are in the view. */
export type CompactionFacts = GuidanceDelivery & CompactionOutcome;

export type CompactionOutcome =
  | {
      readonly kind: "compacted";
      readonly round: number;
      readonly before: number;
      readonly after: number;
      readonly context: ContextSize;
    }
  /** Nothing was replaced, but results or messages too large for the window were hidden. */
  | { readonly kind: "pruned"; readonly hidden: number; readonly context: ContextSize }
  /** There was nothing to replace. */
  | { readonly kind: "nothing"; readonly reason: string; readonly context: ContextSize }
  /** The model's limit is used up, and its provider said when it ends. Nothing was stored. */
  | { readonly kind: "limited"; readonly waitMs: number; readonly context: ContextSize }
  /** Every fallback failed; history is unchanged. */
  | { readonly kind: "failed"; readonly reason: string; readonly context: ContextSize };

export interface UndoCompactionInput {
  readonly step: number;
  /** Id of the person's request: one id undoes one round, however often it is sent. */
  readonly requestId: string;
}

export type UndoneFacts =
  | { readonly kind: "undone"; readonly round: number; readonly context: ContextSize }
  | { readonly kind: "nothing"; readonly reason: string; readonly context: ContextSize };

export interface PruneInput {
  /** The last finished step. */
  readonly step: number;
  /** Before the next step: the waiting messages are delivered first. */
  readonly delivers?: true;
  /** As in `ModelStepInput`. */
  readonly guidance?: readonly string[] | undefined;
}

export interface PruneFacts extends GuidanceDelivery {
  readonly pruned: number;
  readonly savedTokens: number;
  readonly context: ContextSize;
}
