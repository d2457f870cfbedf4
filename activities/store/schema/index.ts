/**
 * The tables. Imports only drizzle, so that migrations can be generated from here. Rules: nothing is deleted (live chunks of
 * a finished step apart): rows are marked. A row of an abandoned line of history (Temporal reset) carries `superseded_epoch`;
 * the live line is where that is null. `superseded_by` lists the epochs that began before the row, so that a reset of an
 * abandoned run can bring its line back (store/lines.ts). Messages are `json`, never `jsonb`, which reorders keys and so
 * breaks prompt-cache bytes and signatures.
 */
import { sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  boolean,
  check,
  doublePrecision,
  index,
  integer,
  json,
  pgTable,
  primaryKey,
  text,
  unique,
} from "drizzle-orm/pg-core";
import { at, bytea, streams, supersededBy } from "./columns.ts";

export const sessions = pgTable(
  "sessions",
  {
    id: text().primaryKey(),
    createdAt: at("created_at").notNull().defaultNow(),
    updatedAt: at("updated_at").notNull().defaultNow(),
    endedAt: at("ended_at"),
    status: text().notNull().default("active"),
    /** The task's text; images and files of it are in the first message. */
    task: text().notNull(),
    /** The resolved run configuration, without secrets. */
    config: json().notNull(),
    epoch: integer().notNull().default(1),
    /** The newest run; writes of any other are refused. */
    runId: text("run_id"),
    /** Temporal's namespace; null until a run has claimed it. */
    namespace: text(),
    /** Name of its container, once there. */
    container: text(),
    /** True from a reset until the workspace has been restored to the newest live checkpoint. */
    restoreWorkspace: boolean("restore_workspace").notNull().default(false),
    /** The model's last message once the session has ended. */
    result: text(),
    error: json(),
    /** What `verify` came to in the newest run; null if nothing was verified. */
    verified: text(),
    /** Set for a session that another one started by `delegate`. */
    parentId: text("parent_id"),
    /** The call, as the ledger names it: `s12c0`. */
    parentCall: text("parent_call"),
    parentEpoch: integer("parent_epoch"),
    /** For a delegate: `read` or `write`. */
    access: text(),
    /** Who started it, as `LONGHAUL_USER` or a server's token says; null means unknown. */
    owner: text(),
  },
  (t) => [
    check(
      "sessions_status_check",
      sql`${t.status} in ('active','waiting','completed','failed','cancelled','max_steps')`,
    ),
    index("sessions_created_at_idx").on(t.createdAt),
    index("sessions_parent_idx")
      .on(t.parentId)
      .where(sql`parent_id is not null`),
    // Used by retention.
    index("sessions_ended_at_idx").on(t.endedAt),
    index("sessions_owner_idx").on(t.owner, t.createdAt),
  ],
);

/** Temporal runs of a session in the order in which they took it over: only the newest may write. */
export const runs = pgTable(
  "runs",
  {
    sessionId: text("session_id")
      .notNull()
      .references(() => sessions.id),
    runId: text("run_id").notNull(),
    ordinal: integer().notNull(),
    epoch: integer().notNull(),
    /** First run of the chain (kept by reset and continue-as-new; a resume by `say` starts another). */
    chain: text().notNull(),
    /** Steps that were finished when it took over. */
    startStep: integer("start_step").notNull(),
    /** For the run that began an epoch: the epoch of the line that it left; null means the one before. */
    parentEpoch: integer("parent_epoch"),
    /** The run of its line that ended before it began; a reset has that of the run that it repeats. */
    previous: text(),
    /** For a reset: the run that it repeats. */
    forkedFrom: text("forked_from"),
    startedAt: at("started_at").notNull().defaultNow(),
  },
  (t) => [primaryKey({ columns: [t.sessionId, t.runId] })],
);

/** Counters that change with every write, apart from the wide session row. */
export const cursors = pgTable("cursors", {
  sessionId: text("session_id")
    .primaryKey()
    .references(() => sessions.id),
  messageSequence: bigint("message_sequence", { mode: "number" }).notNull().default(0),
  eventSeq: bigint("event_seq", { mode: "number" }).notNull().default(0),
});

/** How a command in the background ended. */
export interface CommandEnd {
  /** `exited` and its code; `gone` with its sandbox; else what ended it. */
  readonly how: string;
  readonly exitCode?: number;
  readonly ms?: number;
  /** The end of what it printed. */
  readonly lines?: string;
}

/** The ledger: a row is written with the assistant message, before anything is run. */
export const toolCalls = pgTable(
  "tool_calls",
  {
    sessionId: text("session_id").notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    index: integer().notNull(),
    /** The provider's id, made unique within the session. */
    callId: text("call_id").notNull(),
    name: text().notNull(),
    /** The sequence of its result, reserved when the call was stored. */
    sequence: bigint({ mode: "number" }).notNull(),
    status: text().notNull().default("pending"),
    /** Raised by each attempt that claims the call; a late attempt's write with an older one is refused. */
    fence: integer().notNull().default(0),
    container: text(),
    exitCode: integer("exit_code"),
    streams: streams(),
    truncated: boolean().notNull().default(false),
    startedAt: at("started_at"),
    finishedAt: at("finished_at"),
    /** For a call to an MCP server: the server, and where it keeps its state. */
    mcpServer: text("mcp_server"),
    mcpState: text("mcp_state"),
    /** Id of the server's task for the call, with which any worker can fetch the result. */
    mcpTask: text("mcp_task"),
    /** Of a command in the background: `running`, `ended` (which the model must be told) or `told`; null for all other calls. */
    background: text(),
    /** How that command ended, in words, masked. */
    backgroundEnd: json("background_end").$type<CommandEnd>(),
    supersededEpoch: integer("superseded_epoch"),
    supersededBy: supersededBy(),
  },
  (t) => [
    primaryKey({ columns: [t.sessionId, t.epoch, t.step, t.index] }),
    unique("tool_calls_session_sequence_key").on(t.sessionId, t.sequence),
    index("tool_calls_call_id_idx").on(t.sessionId, t.callId),
    index("tool_calls_background_idx")
      .on(t.sessionId)
      .where(sql`background in ('running', 'ended')`),
    check(
      "tool_calls_status_check",
      sql`${t.status} in ('pending','running','completed','error','interrupted','unknown')`,
    ),
    check("tool_calls_background_check", sql`${t.background} in ('running','ended','told')`),
  ],
);

/** Whole outputs that were too long for the model, in pieces, behind a handle. */
export const toolOutputs = pgTable(
  "tool_outputs",
  {
    sessionId: text("session_id").notNull(),
    handle: text().notNull(),
    part: integer().notNull(),
    /** Characters before this piece. */
    offset: bigint({ mode: "number" }).notNull(),
    content: text().notNull(),
  },
  (t) => [primaryKey({ columns: [t.sessionId, t.handle, t.part] })],
);

export const modelCalls = pgTable(
  "model_calls",
  {
    id: bigserial({ mode: "number" }).primaryKey(),
    sessionId: text("session_id").notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    attempt: integer().notNull(),
    /** `step` or `summary`. */
    purpose: text().notNull(),
    model: text().notNull(),
    /** `kept`: its answer is in the transcript; `wasted`: the request was, or may have been, billed without any use. */
    status: text().notNull(),
    finish: text(),
    error: text(),
    estimatedInput: integer("estimated_input").notNull(),
    /** True if the estimate was not based on billed usage. */
    estimatePure: boolean("estimate_pure").notNull(),
    inputTokens: integer("input_tokens"),
    cachedTokens: integer("cached_tokens"),
    cacheWriteTokens: integer("cache_write_tokens"),
    outputTokens: integer("output_tokens"),
    reasoningTokens: integer("reasoning_tokens"),
    firstTokenMs: integer("first_token_ms"),
    durationMs: integer("duration_ms"),
    /** USD by the prices at that time, or as a router reported it; null if it is not known. */
    costUsd: doublePrecision("cost_usd"),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [index("model_calls_session_idx").on(t.sessionId, t.step)],
);

/** How a model's actual input compares to our estimates: actual / estimated, smoothed. Survives restarts. */
export const tokenRatios = pgTable("token_ratios", {
  model: text().primaryKey(),
  ratio: doublePrecision().notNull(),
  samples: integer().notNull(),
  updatedAt: at("updated_at").notNull().defaultNow(),
});

export const blobs = pgTable("blobs", {
  sha256: text().primaryKey(),
  mediaType: text("media_type").notNull(),
  bytes: bytea().notNull(),
  createdAt: at("created_at").notNull().defaultNow(),
});

/**
 * Which session uses which blob, from the moment it is saved until the session is deleted. Triggers of `stored_messages`,
 * `guidance` and `batch_items` add a row for each blob that they name. The session may be one that does not exist yet.
 */
export const blobUses = pgTable(
  "blob_uses",
  {
    sessionId: text("session_id").notNull(),
    sha256: text().notNull(),
    /** Since when: a start that never happened keeps nothing for long. */
    keptAt: at("kept_at").notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.sessionId, t.sha256] }),
    // Used when a session is deleted, to find blobs that no other one uses.
    index("blob_uses_blob_idx").on(t.sha256),
  ],
);

/** The queue of people's messages: those that wait, and all delivered ones, so that a reset can deliver them again. */
export const guidance = pgTable(
  "guidance",
  {
    sessionId: text("session_id").notNull(),
    id: text().notNull(),
    ordinal: bigserial({ mode: "number" }).notNull(),
    parts: json().notNull(),
    queuedAt: text("queued_at").notNull(),
    /** A worker has it from Temporal, and cleaned it. Before that it is as its sender stored it. */
    received: boolean().notNull().default(false),
    /** Its place in the queue, and from when on it is delivered: a run that receives it sets it to that moment. */
    dueAt: at("due_at").notNull().defaultNow(),
    /** Who wrote it, if the client reported it. */
    author: text(),
    /** The message that carries it, once delivered. */
    deliveredSequence: bigint("delivered_sequence", { mode: "number" }),
    /** A person went back to before it was sent, and did not want it delivered again. */
    dropped: boolean().notNull().default(false),
  },
  (t) => [
    primaryKey({ columns: [t.sessionId, t.id] }),
    // Used by each step to check whether any are waiting.
    index("guidance_waiting_idx")
      .on(t.sessionId, t.dueAt, t.ordinal)
      .where(sql`delivered_sequence is null and not dropped`),
  ],
);

/** Packs in the object store: a row is there before its object, so that none is forgotten. */
export const storedObjects = pgTable("stored_objects", {
  key: text().primaryKey(),
  bytes: bigint({ mode: "number" }).notNull(),
  /** A save or a base has named it: if none does any more, it is of no use. */
  isUsed: boolean("is_used").notNull().default(false),
  createdAt: at("created_at").notNull().defaultNow(),
});

/** The object that has a row's pack, and its size; null if the row has the pack itself. */
const packObject = () => ({
  packObject: text("pack_object").references(() => storedObjects.key),
  objectBytes: bigint("object_bytes", { mode: "number" }),
});

/** Checkouts that sessions share as the base of their workspaces: kept once for all their saves. */
export const bases = pgTable(
  "bases",
  {
    /** A hash of all that it was made from: address, commit, settings, whose it is. */
    key: text().primaryKey(),
    /** The same without the commit: bases of one family differ in nothing else. */
    family: text("base_family").notNull(),
    url: text().notNull(),
    commit: text().notNull(),
    /** As a checkpoint's: all its files. */
    manifest: bytea().notNull(),
    /** As a whole checkpoint's; of a base that is too large for a save, only what the reading of a difference needs. */
    pack: bytea().notNull(),
    ...packObject(),
    isWhole: boolean("is_whole").notNull(),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [
    index("bases_family_idx").on(t.family, t.createdAt),
    index("bases_object_idx")
      .on(t.packObject)
      .where(sql`pack_object is not null`),
  ],
);

/** The workspace's files after a step: a tar of what changed since the parent, and the list of all files, or of what is not as in its base. */
export const checkpoints = pgTable(
  "checkpoints",
  {
    id: bigserial({ mode: "number" }).primaryKey(),
    sessionId: text("session_id").notNull(),
    epoch: integer().notNull(),
    step: integer().notNull(),
    /** The checkpoint it builds on; null for a whole one. */
    parentId: bigint("parent_id", { mode: "number" }),
    /** The base that it lists the difference to; null if it lists all files. */
    baseKey: text("base_key").references(() => bases.key),
    /** gzip of one line per file: mode, size, modification time, path. */
    manifest: bytea().notNull(),
    /** gzip of a tar with the files that are new or changed since the parent; empty if an object has it. */
    pack: bytea().notNull(),
    ...packObject(),
    /** The same of files that differ from the base since this checkpoint, as the base has them; null if the base's pack has them. */
    before: bytea("before_pack"),
    supersededEpoch: integer("superseded_epoch"),
    supersededBy: supersededBy(),
    createdAt: at("created_at").notNull().defaultNow(),
  },
  (t) => [
    unique("checkpoints_session_epoch_step_key").on(t.sessionId, t.epoch, t.step),
    index("checkpoints_base_idx")
      .on(t.baseKey)
      .where(sql`base_key is not null`),
    index("checkpoints_object_idx")
      .on(t.packObject)
      .where(sql`pack_object is not null`),
    // Finds the checkpoints that build on one: used when a step is saved again, and when a session is deleted.
    index("checkpoints_parent_idx")
      .on(t.parentId)
      .where(sql`parent_id is not null`),
  ],
);

export * from "./mcp.ts";
export * from "./messages.ts";
export * from "./questions.ts";
export * from "./sandboxes.ts";
export * from "./spending.ts";
export * from "./started-sessions.ts";
export * from "./verifications.ts";
export * from "./follows.ts";
export * from "./waits.ts";
export * from "./warms.ts";
export * from "./workers.ts";
