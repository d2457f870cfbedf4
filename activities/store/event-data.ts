/** What events carry, by type. Names are fixed (requirement 6); fields may be added, never renamed. */
import { z } from "zod";
import { PULL_REQUEST_ENDS } from "../contract/follow.ts";
import { VERIFY_OUTCOMES } from "../contract/verify.ts";

const text = z.string();
const number = z.number();
const flag = z.boolean();
/** Absent means no. */
const yes = z.literal(true);
const of = z.strictObject;
const list = <T extends z.ZodType>(item: T) => z.array(item).readonly();
/** A person has closed or merged it. */
const notOpen = z.enum(["closed", "merged"]);
/** What was not had as it was asked for. */
const remarks = list(text).optional();

/** What a sandbox can reach: see `SandboxNetwork` in sandbox.ts. */
const measuredNetwork = of({
  reach: text,
  why: text.optional(),
  tried: number.optional(),
  refused: list(text).optional(),
  reachable: list(text).optional(),
});

export const eventData = {
  /** `resetTo`: a person went back to the moment before this step; this step and everything after it are on an abandoned line. */
  "session:started": of({
    task: text,
    model: text,
    continued: flag,
    resetTo: number.optional(),
    /** Who started the session, if the client reported it. */
    owner: text.optional(),
  }),
  /** Tokens: `triggerTokens` is the size at which room is made, `limit` another name of it, `window` the model's whole window. */
  "step:started": of({
    estimatedInput: number,
    estimated: flag,
    triggerTokens: number,
    limit: number,
    window: number,
  }),
  /** The request was sent; `hidden`: bytes have arrived for a while without content, so the model's thinking is not shown. */
  "llm:thinking": of({ model: text, hidden: yes.optional() }),
  /** A long call is reported while it is written: `tool-name` begins it, its arguments follow as they come. */
  "llm:chunk": of({ chunkType: z.enum(["text", "reasoning", "tool-name", "tool-input"]), text: text }),
  "llm:response": of({
    content: text,
    reasoning: text,
    finish: text,
    /** Why the answer ended, in the provider's own words, if they say more than `finish`. */
    finishReason: text.optional(),
    tokenUsage: of({ input: number, output: number, cached: number, reasoning: number }),
    /** The provider's counts contradict ours over several calls, so they are not used. Reported once per session. */
    usageDoubtful: yes.optional(),
    /** The provider hides the model's thoughts from this account; the session continues without them. Once per session. */
    summaryRefused: yes.optional(),
    /** Tools of MCP servers or the operator that the provider refuses: the model gets the others. Each once per session. */
    refusedTools: z.array(text).optional(),
    /** The size of the next request after this answer, in tokens. */
    contextUsed: number,
    /** True if `contextUsed` is not based on billed usage. */
    contextEstimated: flag,
    contextLimit: number,
    costUsd: number.nullable(),
    durationMs: number,
    /** The model that answered. */
    model: text,
    provider: text,
  }),
  /** `about`: a command's first line, a path. `input`: the arguments, `inputCut` the beginning of their JSON if they are long. */
  "llm:tool-call": of({
    callId: text,
    index: number,
    name: text,
    about: text,
    input: z.unknown().optional(),
    inputCut: text.optional(),
  }),
  /** Instructions of a folder that a result carries; `path` relative to the workspace. */
  "instructions:loaded": of({ path: text, bytes: number }),
  /** The agent has read a skill's file. */
  "skill:opened": of({ name: text, path: text }),
  /** `excerpt`: the result's end, at most 300 characters; `text` its beginning, and `handle` names the whole of a longer one. */
  "llm:tool-result": of({
    callId: text,
    index: number,
    name: text,
    outcome: text,
    durationMs: number,
    exitCode: number.nullable(),
    truncated: flag,
    excerpt: text,
    text: text.optional(),
    handle: text.optional(),
  }),
  "llm:error": of({ class: text, message: text, retryInMs: number.nullable(), final: flag }),
  /** The model's rate limit is used up, so the step waits. Reported once for all attempts. */
  "llm:throttled": of({
    waitMs: number,
    limit: z.enum(["requestsPerMinute", "tokensPerMinute", "concurrent"]),
  }),
  "llm:switched": of({ from: text, to: text, reason: z.enum(["person", "fallback", "return"]).optional() }),
  /** Much of a limit is used, which a person may want to know; in USD, of `limits.maxCostUsd`. */
  "limit:near": of({ limit: z.enum(["cost", "budget"]), used: number, max: number, scope: text.optional() }),
  "llm:unsupported-input": of({ mediaType: text, message: text }),
  "context:compressing": of({ trigger: text, strategy: text, tokensBefore: number }),
  "context:compressed": of({
    round: number,
    strategy: text,
    trigger: text,
    tokensBefore: number,
    tokensAfter: number,
    messages: number,
    status: text,
    reason: text.nullable(),
  }),
  "context:pruned": of({ prunedCount: number, savedTokens: number }),
  /** `by`, here and below: who did it, if the client reported it (`LONGHAUL_USER`). */
  "message:queued": of({ id: text, position: number, excerpt: text, by: text.optional() }),
  /** Its sender took it back before the agent read it. */
  "message:withdrawn": of({ id: text, by: text.optional() }),
  "message:dequeued": of({
    count: number,
    ids: list(text),
    coalesced: flag,
    text: text,
    firstQueuedAt: text,
    lastQueuedAt: text,
    by: list(text).optional(),
  }),
  /** A person's action on the session: `interrupt`, `cancel`, `pull` …; only if the client knows who. */
  "person:acted": of({ action: text, by: text }),
  "sandbox:created": of({
    container: text,
    workspace: text,
    network: measuredNetwork.optional(),
    /** What `sandbox.allow` opens of the addresses that are otherwise closed. */
    allow: list(text).optional(),
    /** The image's digest, or its id if no registry has it. */
    image: text.optional(),
    /** Whether its workspace is stacked over a base, or has all its files itself. */
    layers: z.enum(["overlay", "copy"]).optional(),
    /** Isolation that does not hold, if the operator runs the sandbox anyway. */
    gaps: list(text).optional(),
  }),
  /** `parked`: it was kept stopped, and started again. */
  "sandbox:adopted": of({ container: text, network: measuredNetwork.optional(), parked: yes.optional() }),
  "sandbox:lost": of({ container: text, message: text }),
  "sandbox:saved": of({ files: number, bytes: number }),
  /** Files missing from the save, each reported once; at most 20 are named. */
  "sandbox:left-out": of({ count: number, files: list(of({ path: text, bytes: number, reason: text })) }),
  /** The session's saves use all the space they may: from the next one on, each save replaces the one before. */
  "sandbox:saves-full": of({ bytes: number, maxBytes: number }),
  /** The session waits only for a person: the sandbox is recreated with the saved files when it is needed. */
  /** `until`: it is stopped and kept, an ISO time; absent: it was removed. */
  "sandbox:parked": of({ container: text, until: text.optional() }),
  /** `why`: of one that was stopped and kept before. */
  "sandbox:removed": of({ container: text, why: text.optional() }),
  /**
   * A host removed something to keep within its part of the disk: the session's own stopped sandbox (`name`: its container), or a base
   * (`name`: its commit) to make room for this session's. In bytes: what went, what was kept before, and what may be kept. `limitCount`: so many
   * stopped sandboxes may be kept, and there were more.
   */
  "host:evicted": of({
    host: text,
    took: z.enum(["sandbox", "base"]),
    name: text,
    bytes: number,
    usedBytes: number,
    limitBytes: number,
    limitCount: number.optional(),
  }),
  /** The container belongs to someone else: our processes and files were removed from it. */
  "sandbox:left": of({ container: text }),
  /** At a run's end: the last files may be in no save, and the container may still exist. */
  "sandbox:not-closed": of({ message: text }),
  /** A service's container was started beside the sandbox, after `ms`, the time for pulling its image included. */
  "service:started": of({ name: text, image: text, container: text, ms: number }),
  /** `ms`: since it was started. */
  "service:healthy": of({ name: text, container: text, ms: number }),
  /** It does not work: before the first step the run ends. `log`: its last lines. */
  "service:failed": of({ name: text, why: text, log: text, container: text.optional() }),
  /** It was running and is gone, or its data is. */
  "service:lost": of({ name: text, why: text, container: text, log: text.optional() }),
  /** The model waits: `until` at the latest (ISO time, null if only a person ends it), and for which commands or question. */
  "wait:started": of({
    for: z.enum(["time", "process", "question"]),
    until: text.nullable(),
    reason: text,
    targets: list(text),
  }),
  "wait:ended": of({ how: text, ms: number }),
  /** A command in the background has ended: `how` in words, `lines` the end of what it printed. */
  "process:ended": of({
    id: text,
    about: text,
    how: text,
    exitCode: number.nullable(),
    ms: number.nullable(),
    lines: text,
  }),
  "setup:started": of({ container: text, commands: list(text) }),
  /** The sandbox is created from an image that the workspace's Dockerfile describes; `output`: the end of the build's output. */
  "setup:built": of({
    container: text,
    /** The image's name on its host. */
    image: text,
    kept: z.enum(["taken", "made"]),
    durationMs: number,
    output: text,
  }),
  /** `output`: the end of the last command's output; `command`: the one that failed. */
  "setup:ended": of({
    container: text,
    status: z.enum(["done", "failed"]),
    durationMs: number,
    output: text,
    command: text.optional(),
    how: text.optional(),
    /** `taken`: nothing ran, because an earlier set-up's result was used; `made`: the result is kept for the next session. */
    kept: z.enum(["taken", "made"]).optional(),
    /** Why the result is not kept. */
    notKept: text.optional(),
  }),
  /** `allow`: the command that allows the host, if a person can. At most one event a minute for each host and reason. */
  "egress:denied": of({ host: text, port: number, reason: text, count: number, allow: text.optional() }),
  /**
   * Requests that got a key of the operator's, of which the first is named. `unread`: the answers were compressed, so that nothing
   * could be masked in them. At most one event a minute for each key and host.
   */
  "egress:key-used": of({
    key: text,
    host: text,
    method: text,
    /** Without its query. */
    path: text,
    status: number,
    unread: text.optional(),
    count: number,
  }),
  /**
   * Requests that did not get the key of their host. `removed`: this worker does not have the key any more; then there is no host.
   * `certificate`: one side did not accept the other's. At most one event a minute for each key, host and reason.
   */
  "egress:key-refused": of({
    key: text,
    host: text,
    method: text,
    path: text,
    reason: z.enum(["method", "path", "host", "http2", "certificate", "removed"]),
    count: number,
  }),
  /** A page that `web_fetch` read: the host after redirects, the size without compression, the HTTP status. */
  "web:fetched": of({ host: text, bytes: number, status: number }),
  "egress:allowed": of({ domain: text, by: text }),
  /** A checkout is made, on which this session and later ones of the same person stand. */
  "base:making": of({ commit: text, why: text }),
  /** `setUpMs`: how long the project's set-up took in it; absent if it has none. */
  "base:made": of({ commit: text, files: number, bytes: number, setUpMs: number.optional(), ms: number }),
  /**
   * `behind`: how many commits it lacks of those that the session began with; `notSetUp`: why it was made without the project's
   * set-up, which the session then runs; `ms`: how long it took to have it.
   */
  "base:used": of({ base: text, commit: text, behind: number, notSetUp: text.optional(), ms: number }),
  /** The repository was checked out for this session alone: why, and how long that took. */
  "base:none": of({ why: text, chosen: z.literal(true).optional(), ms: number }),
  /** The session's first files, from a repository; `ref` is the branch, tag or commit that it started from. */
  "git:fetched": of({ url: text, ref: text, commit: text, branch: text, bytes: number }),
  /** `commits`: how many the branch has beyond the session's starting commit. */
  "git:pushed": of({
    branch: text,
    commit: text,
    commits: number,
    forced: yes.optional(),
    /** The local branch whose commits were delivered, because HEAD had none. */
    from: text.optional(),
    remarks,
  }),
  "git:refused": of({ branch: text, reason: text }),
  /** `state`: a person has closed or merged it, and it stays so. */
  "git:pull-request": of({ url: text, number: number, created: flag, state: notOpen.optional(), remarks }),
  /**
   * A review was written into a pull request. `comments`: on lines; `inSummary`: findings that are on no line of the diff, or too many;
   * `toldBefore`: findings that an earlier review had told; `head`: the newest commit, if that is not what was read; `wasThere`: another
   * session had reviewed this commit, so nothing was written.
   */
  "git:review": of({
    url: text,
    number: number,
    commit: text,
    verdict: z.enum(["comment", "approve", "request-changes"]),
    comments: number,
    inSummary: number,
    toldBefore: number,
    head: text.optional(),
    wasThere: yes.optional(),
  }),
  /** Files and other work (branches, stashes, worktrees) that were not delivered; at most 20 are named. `count`: commits or changes. */
  "git:left-out": of({
    count: number,
    files: list(
      of({ path: text, bytes: number, reason: text, count: number.optional(), about: text.optional() }),
    ),
  }),
  /** A person has to answer: `longhaul answer ID`. `kind`: `ask`; `approval` of a call, `plan`, `egress`; `budget` at a limit. */
  "question:asked": of({
    id: text,
    kind: text,
    text: text,
    options: list(of({ label: text, description: text.optional() })).nullable(),
    default: text.nullable(),
    /** When the default is used; null means never. */
    expiresAt: text.nullable(),
  }),
  /** `how`: `answered`, `allowed`, `allowed-always`, `denied`, `declined`; or `defaulted` if no one was asked. */
  "question:answered": of({ id: text, how: text, by: text.nullable(), excerpt: text }),
  /** No one answered in time: the default was used. */
  "question:expired": of({ id: text, default: text }),
  /** `reason`: `said` (a message came instead), `stopped`, `unattended`, `too-many`. */
  "question:withdrawn": of({ id: text, reason: text }),
  /** A separate session works on a call; `about`: its task's beginning. */
  "delegate:started": of({ callId: text, childId: text, access: z.enum(["read", "write"]), about: text }),
  /** `applied`: its files that were taken, `merged` of them with changes in both places, and those that were not; at most 100 each. */
  "delegate:ended": of({
    callId: text,
    childId: text,
    status: text,
    steps: number,
    costUsd: number.nullable(),
    applied: list(text),
    merged: list(text).optional(),
    notApplied: list(of({ path: text, reason: text })),
  }),
  /** A server's tools are available, or it was connected again; `tokens` counts their descriptions. */
  "mcp:connected": of({ server: text, era: text, tools: number, tokens: number }),
  /** A person has to log in first; `command` does it. */
  "mcp:login-needed": of({ server: text, command: text }),
  /** The server's list of tools has changed: used after the next compaction, or once a person sends a message. */
  "mcp:changed": of({ server: text, added: list(text), removed: list(text) }),
  "mcp:failed": of({ server: text, message: text, required: flag }),
  /**
   * The database was restored from an older copy: the rows of these steps are missing, and what they did may be in the files. `calls`:
   * only the results of so many calls of the step are missing.
   */
  "record:missing": of({ from: number, to: number, calls: number.optional() }),
  /** A command of `verify` begins to run, or is followed by another attempt. */
  "verify:started": of({ command: text, round: number }),
  /** `tail`: of a failure, the part of its output that says why; `handle`: of all of it; `changed`: files under `verify.protect` that the work changes. */
  "verify:ended": of({
    round: number,
    command: text,
    outcome: z.enum(VERIFY_OUTCOMES),
    how: text,
    exitCode: number.optional(),
    ms: number,
    tail: text,
    handle: text.optional(),
    changed: list(text).optional(),
  }),
  /** The pull request is followed from now on: `rounds` times at most, until an ISO time. */
  "follow:started": of({ url: text, number: number, rounds: number, until: text, maxCostUsd: number }),
  /** Something about it has changed: in words. Not for each look. */
  "follow:looked": of({ head: text, line: text }),
  /** The session was told what is wrong. */
  "follow:round": of({ number: number, head: text, reasons: list(text) }),
  "follow:answered": of({ threads: number }),
  /** The worker has merged the base's commit into the branch, and pushed that commit. */
  "follow:updated": of({ base: text, commit: text }),
  "follow:ready": of({}),
  "follow:waiting": of({ for: text }),
  /** The session is told nothing more until a person continues it. */
  "follow:paused": of({ reason: text }),
  "follow:ended": of({
    end: z.enum(PULL_REQUEST_ENDS),
    rounds: number,
    costUsd: number.nullable(),
    hours: number,
  }),
  "session:ended": of({
    status: text,
    /** Which limit was reached, if not the limit of steps. */
    limit: z.enum(["cost", "deadline", "budget"]).optional(),
    reason: text.nullable(),
    text: text,
    /** The answer, if JSON that fits a schema was requested. */
    output: z.unknown().optional(),
    usage: of({ input: number, cached: number, output: number, reasoning: number, calls: number }),
    costUsd: number.nullable(),
    steps: number,
    rounds: number,
    durationMs: number,
    /** For a session that works on a repository. */
    delivery: z.enum(["none", "done", "refused"]).optional(),
    /** For a session with `verify`: what the last look at its work came to. */
    verified: z.enum(VERIFY_OUTCOMES).optional(),
  }),
} as const;
