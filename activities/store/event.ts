/** Events as watchers see them. Names are fixed (requirement 6); fields may be added, never renamed. */

/** What a sandbox can reach: see `SandboxNetwork` in sandbox.ts. */
interface MeasuredNetwork {
  readonly reach: string;
  readonly why?: string;
  readonly tried?: number;
  readonly refused?: readonly string[];
  readonly reachable?: readonly string[];
}

export interface EventData {
  /** `resetTo`: somebody went back to the moment before this step; what came from it on is of an abandoned line. */
  "session:started": { task: string; model: string; continued: boolean; resetTo?: number };
  /** Tokens: `limit` is where compaction starts, `window` the model's whole window. `window` is absent in events of earlier versions. */
  "step:started": { estimatedInput: number; estimated: boolean; limit: number; window?: number };
  /** The request is on its way; `hidden`: bytes come and have long brought nothing to show, so it thinks where nobody sees it. */
  "llm:thinking": { model: string; hidden?: true };
  "llm:chunk": { chunkType: "text" | "reasoning"; text: string };
  "llm:response": {
    content: string;
    reasoning: string;
    finish: string;
    tokenUsage: { input: number; output: number; cached: number; reasoning: number };
    /** The provider's counts contradict ours over several calls: they are not reckoned with. Told once a session. */
    usageDoubtful?: true;
    /** The next request as it stands with this answer, in tokens. */
    contextUsed: number;
    /** True where no bill stands behind `contextUsed`. Absent in events of earlier versions. */
    contextEstimated?: boolean;
    contextLimit: number;
    costUsd: number | null;
    durationMs: number;
  };
  /** `about`: a command's first line, a path. */
  "llm:tool-call": { callId: string; index: number; name: string; about: string };
  /** Instructions of a folder that a result carries; `path` relative to the workspace. */
  "instructions:loaded": { path: string; bytes: number };
  /** The agent has read a skill's file. */
  "skill:opened": { name: string; path: string };
  /** `excerpt`: the result's end, at most 300 characters. */
  "llm:tool-result": {
    callId: string;
    index: number;
    name: string;
    outcome: string;
    durationMs: number;
    exitCode: number | null;
    truncated: boolean;
    excerpt: string;
  };
  "llm:error": { class: string; message: string; retryInMs: number | null; final: boolean };
  "llm:switched": { from: string; to: string; reason?: "person" | "fallback" | "return" };
  /** So much of a limit is used that a person may want to know: USD of `limits.maxCostUsd`. */
  "limit:near": { limit: "cost"; used: number; max: number };
  "llm:unsupported-input": { mediaType: string; message: string };
  "context:compressing": { trigger: string; strategy: string; tokensBefore: number };
  "context:compressed": {
    round: number;
    strategy: string;
    trigger: string;
    tokensBefore: number;
    tokensAfter: number;
    messages: number;
    status: string;
    reason: string | null;
  };
  "context:pruned": { prunedCount: number; savedTokens: number };
  "message:queued": { id: string; position: number; excerpt: string };
  /** Its sender took it back before the agent read it. */
  "message:withdrawn": { id: string };
  "message:dequeued": {
    count: number;
    ids: string[];
    coalesced: boolean;
    text: string;
    firstQueuedAt: string;
    lastQueuedAt: string;
  };
  "sandbox:created": {
    container: string;
    workspace: string;
    network?: MeasuredNetwork;
    /** Walls that do not hold, where the operator runs the sandbox all the same. */
    gaps?: readonly string[];
  };
  "sandbox:adopted": { container: string; network?: MeasuredNetwork };
  "sandbox:lost": { container: string; message: string };
  "sandbox:saved": { files: number; bytes: number };
  /** Files that the save does not hold, each told once; at most 20 are named. */
  "sandbox:left-out": { count: number; files: { path: string; bytes: number; reason: string }[] };
  "sandbox:removed": { container: string };
  /** At a run's end: the last files may be in no save, and the container may be there still. */
  "sandbox:not-closed": { message: string };
  /** `allow`: the command that lets it through, where a person can. At most one a minute for each host and reason. */
  "egress:denied": { host: string; port: number; reason: string; count: number; allow?: string };
  "egress:allowed": { domain: string; by: string };
  /** The session's first files, from a repository; `ref` is the branch, tag or commit that it started from. */
  "git:fetched": { url: string; ref: string; commit: string; branch: string; bytes: number };
  /** `commits`: how many the branch has that the session's start has not. */
  "git:pushed": { branch: string; commit: string; commits: number; forced?: true };
  "git:refused": { branch: string; reason: string };
  "git:pull-request": { url: string; number: number; created: boolean };
  /** Files that the last commit does not have; at most 20 are named. */
  "git:left-out": { count: number; files: { path: string; bytes: number; reason: string }[] };
  "session:ended": {
    status: string;
    /** Which limit, where it was not the steps'. */
    limit?: "cost" | "deadline";
    reason: string | null;
    text: string;
    usage: { input: number; cached: number; output: number; reasoning: number; calls: number };
    costUsd: number | null;
    steps: number;
    rounds: number;
    durationMs: number;
    /** Of a session that works on a repository. */
    delivery?: "none" | "done" | "refused";
  };
}

export type EventType = keyof EventData;

/** An event before it has its place in the order. */
export type NewEvent = {
  [Type in EventType]: {
    readonly type: Type;
    readonly step: number;
    readonly attempt?: number;
    readonly data: EventData[Type];
  };
}[EventType];

/** An event as it is read back. `seq` grows; chunks of finished steps are gone, which leaves holes. */
export interface SessionEvent<Type extends EventType = EventType> {
  readonly seq: number;
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly attempt: number;
  readonly at: string;
  readonly type: Type;
  readonly data: EventData[Type];
}
