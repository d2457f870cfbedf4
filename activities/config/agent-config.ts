/**
 * The configuration file (`longhaul.yaml`), with its defaults and their sources. Unknown keys are refused. The client
 * resolves it once at a session's start; the session's row keeps the result, so that a later change of the file never
 * affects a running session.
 */
import { z } from "zod";
import { containerSchema, inheritedSchema, sandboxConfigSchema } from "./sandbox-settings.ts";
import { MAX_WAIT_MS, timerMs, waitMs, sizeSchema } from "./setting-values.ts";
import { gitConfigSchema, sessionGitSchema } from "./git-settings.ts";
import { outputSchemaSchema } from "./output-schema.ts";
import { reviewConfigSchema, sessionReviewSchema } from "./review-settings.ts";
import { prioritySchema, tenantSchema } from "./precedence.ts";
import { keysSchema } from "./key-settings.ts";
import { mcpServersSchema } from "./mcp-settings.ts";
import { sessionSkillsSchema, skillsSchema } from "./skills.ts";
import { MAX_HEAD_MESSAGES, strategyNames } from "./strategies.ts";
import { verifySchema } from "./verify-settings.ts";
import { modelConfigSchema, modelTargetSchema, providerConfigSchema } from "./model-target.ts";

/** Whether and how long people are asked. */
export const QUESTION_MODES = ["ask", "default", "deny"] as const;

export type QuestionMode = (typeof QUESTION_MODES)[number];

const questionsSchema = z.strictObject({
  /** `default`: no one is asked, and the model's own default is used; `deny`: the model cannot ask at all. */
  mode: z.enum(QUESTION_MODES).default("ask"),
  /** Time in ms after which a question that has a default is answered with it. Default: never. */
  defaultAfter: waitMs.optional(),
  /** Time in ms with nothing but open questions after which the sandbox is saved and removed until the answer. */
  parkAfter: waitMs.default(600_000),
  /** Most questions per step. Chosen; other agents take one to four. */
  maxOpen: z.number().int().min(1).max(100).default(8),
});
export type QuestionSettings = z.infer<typeof questionsSchema>;

/** Which calls run, wait for a person's approval, or are denied: the last matching rule applies. */
const permissionsSchema = z
  .array(
    z.strictObject({
      /** A tool's name; `*` matches any characters, here and in `match`. */
      tool: z.string().min(1).max(100),
      /** A command of a shell line, or a path in the workspace; default: every call of the tool. */
      match: z.string().min(1).max(1_000).optional(),
      action: z.enum(["allow", "ask", "deny"]),
    }),
  )
  .max(200);

const count = z.number().int().positive();

/** Settings of tasks that the agent delegates to separate sessions (`delegate` of longhaul.yaml). */
export const delegateConfigSchema = z.strictObject({
  /** False: the agent has no `delegate` tool. */
  enabled: z.boolean().default(true),
  /** How many delegates run at once for one session; further ones wait. Chosen: each has its own sandbox. */
  maxConcurrent: count.max(32).default(4),
  /** How many delegates a session may have in total. */
  maxPerSession: count.max(1_000).default(50),
  /** Most steps of one delegate. */
  maxSteps: count.default(100),
  /** The file access that a delegate may get: a copy, or one whose changes come back. */
  access: z
    .array(z.enum(["read", "write"]))
    .min(1)
    .default(["read", "write"]),
  /** The delegates' model; `inherit`: the session's own. */
  model: z.string().min(1).default("inherit"),
});

/** The delegate settings as stored with a session, with their model resolved. */
const sessionDelegateSchema = delegateConfigSchema.omit({ model: true }).extend({
  target: z.object(modelTargetSchema.shape).optional(),
});
export type DelegateSettings = z.infer<typeof sessionDelegateSchema>;

/** Longest text that the operator may add to the system prompt. Chosen: some 5,000 tokens. */
const MAX_OWN_PROMPT_CHARS = 20_000;

/** A shorter deadline is not enough for a step. */
const MIN_DEADLINE_MS = 10_000;

const tokens = z.number().int().positive();
const toolLimitsSchema = z.strictObject({
  maxTimeout: timerMs.optional(),
  maxChars: count.optional(),
  maxLines: count.optional(),
  maxLineChars: count.optional(),
  maxMatches: count.optional(),
});
export const toolConfigSchema = z.strictObject({
  timeout: timerMs.optional(),
  limits: toolLimitsSchema.optional(),
});
export type ToolConfig = z.infer<typeof toolConfigSchema>;

type LimitNames = Partial<Record<keyof typeof toolLimitsSchema.shape, true>>;
const limited = (names: LimitNames) => z.strictObject({ limits: toolLimitsSchema.pick(names).optional() });
const timed = (names: LimitNames) => limited(names).extend({ timeout: timerMs.optional() }).optional();
const charsOnly = limited({ maxChars: true }).optional();

/** Which calls of a step may run at once: all, none, or those whose tool only reads. */
const parallelSchema = z.union([z.boolean(), z.literal("read-only")]);

/** Each tool with the settings that it uses: one that would have no effect is refused as unknown. */
export const toolsConfigSchema = z.strictObject({
  parallel: parallelSchema.optional(),
  bash: timed({ maxTimeout: true, maxChars: true }),
  write_stdin: charsOnly,
  bash_output: charsOnly,
  kill_process: charsOnly,
  restart_service: charsOnly,
  // The timeout applies to searching for lines far into a large file.
  read_file: timed({ maxChars: true, maxLines: true, maxLineChars: true }),
  write_file: charsOnly,
  edit_file: charsOnly,
  apply_patch: charsOnly,
  list_directory: limited({ maxChars: true, maxMatches: true }).optional(),
  glob_files: timed({ maxChars: true, maxMatches: true }),
  grep_content: timed({ maxChars: true, maxLineChars: true, maxMatches: true }),
  read_output: charsOnly,
  search_history: charsOnly,
  view_image: charsOnly,
  web_fetch: timed({ maxChars: true }),
  todo: charsOnly,
  ask_user: charsOnly,
  /** `false`: the tool is not offered. */
  wait: z.union([z.literal(false), charsOnly]),
  delegate: charsOnly,
  reply_review: charsOnly,
  rerun_checks: charsOnly,
  exit_plan: charsOnly,
});

/** Until the response's headers, and from then until the first piece, in ms. Servers of this machine are given longer. */
export const USUAL_WAITS = { connectMs: 30_000, firstTokenMs: 180_000 } as const;

const limitsConfigSchema = z.strictObject({
  /** Source: requirements, default 50; long tasks need more, so the product's default is 500. */
  maxSteps: z.number().int().positive().default(500),
  /** Continue as new after this many events; Temporal itself suggests it at 4,096. */
  maxHistoryEvents: z.number().int().min(50).default(3_000),
  modelTimeout: timerMs.default(600_000),
  connectTimeout: timerMs.default(USUAL_WAITS.connectMs),
  firstTokenTimeout: timerMs.default(USUAL_WAITS.firstTokenMs),
  silenceTimeout: timerMs.default(90_000),
  /** Silence in mid-answer of a model that reasons. Source: head-to-head of nine agents; the most patient wait 300 s. */
  thinkingTimeout: timerMs.default(300_000),
  /** Most USD that a session may cost; at the limit it ends after a wrap-up step. Default: no limit. */
  maxCostUsd: z.number().positive().optional(),
  /**
   * Size of a session's saved files in Postgres; beyond it only the newest are kept. Chosen: sixteen of the
   * largest saves.
   */
  maxSaved: sizeSchema.default("4g"),
  /** At `maxCostUsd` and `maxSteps`: the run ends, or a person is asked whether it may continue. */
  onLimit: z.enum(["stop", "ask"]).default("stop"),
  /** How long a run may take, in ms, waiting included; then it ends after a last answer. Default: no limit. */
  deadline: z.number().int().min(MIN_DEADLINE_MS).max(MAX_WAIT_MS).optional(),
  /**
   * How long before the deadline the last answer is requested, in ms; at most a quarter of the deadline. Chosen by
   * judgement: time for one answer.
   */
  wrapUp: waitMs.default(120_000),
  /** The longest wait that the model may begin, in ms. Source: the longest limits of subscriptions are weekly. */
  maxWait: waitMs.default(7 * 86_400_000),
  /** How often a run may wait. Chosen by judgement: a model that only waits gets no further. */
  maxWaits: z.number().int().min(0).default(20),
  /** How long a fallback model is used before the session's own is asked again, in ms. Chosen: ten minutes. */
  returnAfter: waitMs.default(600_000),
});

const contextConfigSchema = z.strictObject({
  strategy: z.enum(strategyNames).default("threshold-turns"),
  options: z
    .strictObject({
      /**
       * Share of the usable window at which compaction starts, 0–1; `overflow`: when the next request does not fit;
       * `manual`: only on a person's `compact`. Default: the strategy's. Source: requirements D0, D2 and D4.
       */
      trigger: z.union([z.number().min(0.05).max(0.95), z.enum(["overflow", "manual"])]).optional(),
      /**
       * The trigger for a session that is resumed after its provider's cache has expired. Default 0.25, or 0.4 in windows
       * below 128,000 tokens.
       */
      returnTrigger: z.number().min(0.05).max(0.95).optional(),
      keepMessages: z.number().int().min(2).optional(),
      /** Share of the messages that is kept, 0–1. */
      keepRatio: z.number().min(0.05).max(0.9).optional(),
      /** Messages after the task that middle removal keeps at the beginning. Default 4. */
      headMessages: z.number().int().min(0).max(MAX_HEAD_MESSAGES).optional(),
      /** The user's newest turns that stay instead of `keepMessages`, as far as the tail's tokens allow. Source: requirement D2. */
      preserveLastNTurns: z.number().int().min(0).optional(),
      /** Tokens of the newest tool results that are never hidden. Source: requirement D2, 40,000. */
      pruneProtect: z.number().int().min(0).optional(),
      /** Smallest number of tokens hidden at once. Source: requirement D2, 20,000. */
      pruneMinimum: tokens.optional(),
      /**
       * When old tool results are hidden: before a summary, where that is cheaper (`auto`); after each step, as soon as
       * `pruneMinimum` can be hidden (`always`); `never`.
       */
      prune: z.enum(["auto", "always", "never"]).optional(),
      /** False: same as `trigger: manual`; a request that does not fit ends the run. Default true. */
      auto: z.boolean().optional(),
      /** Model for summaries; default the session's own. */
      summaryModel: z.string().optional(),
    })
    .default({}),
});

/** A file name in a folder of the workspace, without a path. */
const fileName = z.string().regex(/^[\w][\w.-]{0,99}$/, "a file name such as AGENTS.md");
/** Instructions in the system prompt: the operator's and those of the project's folders. */
const instructionsSchema = z.strictObject({
  /** The operator's own instructions, for every session. */
  text: z.string().min(1).max(MAX_OWN_PROMPT_CHARS).optional(),
  /** File names of a project's instructions: the first that exists in a folder is used. */
  files: z.array(fileName).default(["AGENTS.md"]),
  /** Instructions of subfolders are shown when the agent first works there. */
  nested: z.boolean().default(true),
  /** Size limit of the workspace folder's own instructions. Source: other agents read some 32 KiB. */
  maxBytes: z.number().int().min(0).max(262_144).default(32_768),
});

export const agentConfigSchema = z.strictObject({
  model: z.string().regex(/\S/, "the name of a model, such as openai/gpt-6.1-sol").optional(),
  models: z.record(z.string(), modelConfigSchema).default({}),
  providers: z
    .record(
      z.string().regex(/^[a-z0-9][a-z0-9_.-]*$/i, "the name of a provider, such as acme"),
      providerConfigSchema,
    )
    .default({}),
  context: contextConfigSchema.prefault({}),
  tools: toolsConfigSchema.default({}),
  sandbox: sandboxConfigSchema.prefault({}),
  limits: limitsConfigSchema.prefault({}),
  git: gitConfigSchema.prefault({}),
  /** Replaces our own text on how to work. */
  systemPrompt: z.string().min(1).max(MAX_OWN_PROMPT_CHARS).optional(),
  instructions: instructionsSchema.prefault({}),
  skills: skillsSchema.prefault({}),
  questions: questionsSchema.prefault({}),
  permissions: permissionsSchema.default([]),
  delegate: delegateConfigSchema.prefault({}),
  mcpServers: mcpServersSchema.default({}),
  /** Commands that decide whether the work is done. */
  verify: verifySchema.optional(),
  /** What a review may say in a pull request. */
  review: reviewConfigSchema.prefault({}),
  /** On one machine: what an operator defines in the policy. Not a part of a session. */
  keys: keysSchema.default({}),
});
export type AgentConfig = z.infer<typeof agentConfigSchema>;

/** A session's settings: the file's with models and prices resolved. Kept in `sessions.config`. */
export const runConfigSchema = z.object({
  ...modelTargetSchema.shape,
  /** The model that writes summaries, if different from the session's own: with its own window, wire and price. */
  summariser: z.object(modelTargetSchema.shape).partial({ input: true }).optional(),
  /** The models that take over a step if the session's model fails, in order. */
  fallback: z.array(z.object(modelTargetSchema.shape)).optional(),
  context: contextConfigSchema,
  tools: z.record(z.string(), toolConfigSchema.optional()),
  /** Absent means that all calls run at once. */
  parallelCalls: parallelSchema.optional(),
  sandbox: sandboxConfigSchema.extend({
    inherited: inheritedSchema.optional(),
    container: containerSchema.optional(),
  }),
  limits: limitsConfigSchema,
  /** Set for a session that works on a repository. */
  repository: sessionGitSchema.optional(),
  systemPrompt: z.string().optional(),
  instructions: instructionsSchema,
  skills: sessionSkillsSchema,
  questions: questionsSchema,
  permissions: permissionsSchema,
  /** A delegate has none: it does not delegate. */
  delegate: sessionDelegateSchema.optional(),
  /** The enabled servers. */
  mcpServers: mcpServersSchema.optional(),
  /** The session has the operator's own tools that its first worker had. */
  ownTools: z.boolean().optional(),
  /** False if its model is not offered `wait`. */
  waits: z.literal(false).optional(),
  /** The session plans first: nothing is changed before a person has approved the plan. */
  plan: z.boolean().optional(),
  /** The session reviews a pull request, and changes nothing. */
  reviews: sessionReviewSchema.optional(),
  /** The session's last answer must be JSON matching this schema. */
  outputSchema: outputSchemaSchema.optional(),
  verify: verifySchema.optional(),
  priority: prioritySchema.optional(),
  tenant: tenantSchema.optional(),
});
export type RunConfig = z.infer<typeof runConfigSchema>;
