/**
 * Configuration as people write it (`longhaul.yaml`), with its defaults and their sources. Unknown keys are refused.
 * The client resolves it once at a session's start; the session's row keeps the result, so that a later change of the
 * file never changes a running session.
 */
import { z } from "zod";
import { containerSchema } from "./container-settings.ts";
import { MAX_WAIT_MS, timerMs, waitMs } from "./durations.ts";
import { delegateConfigSchema, sessionDelegateSchema } from "./delegate-settings.ts";
import { gitConfigSchema, sessionGitSchema } from "./git-settings.ts";
import { outputSchemaSchema } from "./output-schema.ts";
import { prioritySchema, tenantSchema } from "./precedence.ts";
import { permissionsSchema, questionsSchema } from "./question-settings.ts";
import { mcpServersSchema } from "./mcp-settings.ts";
import { inheritedSchema, sandboxConfigSchema } from "./sandbox-settings.ts";
import { sizeSchema } from "./sizes.ts";
import { sessionSkillsSchema, skillsSchema } from "./skill-settings.ts";
import { MAX_HEAD_MESSAGES, strategyNames } from "../contract/strategies.ts";
import { modelConfigSchema, modelTargetSchema, providerConfigSchema } from "./model-target.ts";

/** Of a text that the operator writes into the system prompt. Source: ours, some 5,000 tokens. */
const MAX_OWN_PROMPT_CHARS = 20_000;

/** Less is not enough for a step. Source: ours. */
const MIN_DEADLINE_MS = 10_000;

const tokens = z.number().int().positive();
const count = z.number().int().positive();
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

/** Each tool with the settings that it heeds: one that would have no effect is refused as unknown. */
export const toolsConfigSchema = z.strictObject({
  parallel: parallelSchema.optional(),
  bash: timed({ maxTimeout: true, maxChars: true }),
  bash_output: charsOnly,
  kill_process: charsOnly,
  // The timeout is that of the search for lines far into a large file.
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
  todo: charsOnly,
  ask_user: charsOnly,
  delegate: charsOnly,
  exit_plan: charsOnly,
});

const limitsConfigSchema = z.strictObject({
  /** Source: requirements, default 50; a day's work needs more, so the product's default is 500. */
  maxSteps: z.number().int().positive().default(500),
  /** Continue as new past this many events; the server itself suggests it at 4,096. Source: survey of durable engines, 1b. */
  maxHistoryEvents: z.number().int().min(50).default(3_000),
  modelTimeout: timerMs.default(600_000),
  connectTimeout: timerMs.default(30_000),
  firstTokenTimeout: timerMs.default(180_000),
  silenceTimeout: timerMs.default(90_000),
  /** USD that a session may cost; then it ends after a wrap-up step. Default: no limit. */
  maxCostUsd: z.number().positive().optional(),
  /** Saved files of a session in Postgres; beyond it only the newest are kept. Source: ours, sixteen of the largest saves. */
  maxSaved: sizeSchema.default("4g"),
  /** At `maxCostUsd` and `maxSteps`: the run ends, or a person is asked whether it may continue. */
  onLimit: z.enum(["stop", "ask"]).default("stop"),
  /** How long a run may take, in ms, also while it waits; then it ends after a last answer. Default: no limit. */
  deadline: z.number().int().min(MIN_DEADLINE_MS).max(MAX_WAIT_MS).optional(),
  /** So long before the deadline that last answer is asked for, in ms; a quarter of the deadline at most. Source: ours, two minutes. */
  wrapUp: waitMs.default(120_000),
  /** How long a model of `fallback` works before the session's own is asked again, in ms. Source: ours, ten minutes. */
  returnAfter: waitMs.default(600_000),
});

const contextConfigSchema = z.strictObject({
  strategy: z.enum(strategyNames).default("reactive-overflow"),
  options: z
    .strictObject({
      /**
       * Share of the usable window at which compaction starts, 0–1; `overflow`: when nothing of it is left; `manual`: on a
       * person's `compact` alone. Default: the strategy's. Source: requirements D0, D2 and D4.
       */
      trigger: z.union([z.number().min(0.05).max(0.95), z.enum(["overflow", "manual"])]).optional(),
      /** The same for a session that is resumed after its provider's cache has expired. Default 0.4. */
      returnTrigger: z.number().min(0.05).max(0.95).optional(),
      keepMessages: z.number().int().min(2).optional(),
      /** Share of the messages that is kept, 0–1. */
      keepRatio: z.number().min(0.05).max(0.9).optional(),
      /** Messages after the task that middle removal leaves at the beginning. Default 4. */
      headMessages: z.number().int().min(0).max(MAX_HEAD_MESSAGES).optional(),
      /** Newest turns of the user that stay instead of `keepMessages`, as far as the tail's tokens allow. Source: D2, 2. */
      preserveLastNTurns: z.number().int().min(0).optional(),
      /** Tokens of the newest tool results that are never hidden. Source: requirement D2, 40,000. */
      pruneProtect: z.number().int().min(0).optional(),
      /** Least tokens that are hidden at once. Source: requirement D2, 20,000. */
      pruneMinimum: tokens.optional(),
      /** When old tool results are hidden: if that pays (`auto`), before each compaction (`always`), `never`. */
      prune: z.enum(["auto", "always", "never"]).optional(),
      /** False: as `trigger: manual`; a request that does not fit ends the run. Default true. */
      auto: z.boolean().optional(),
      /** Model for summaries; default the session's own. */
      summaryModel: z.string().optional(),
    })
    .default({}),
});

/** A file name of a folder of the workspace, without a path. */
const fileName = z.string().regex(/^[\w][\w.-]{0,99}$/, "a file name such as AGENTS.md");
/** Instructions in the system prompt, and those of the project's folders. */
const instructionsSchema = z.strictObject({
  /** The operator's own, for every session. */
  text: z.string().min(1).max(MAX_OWN_PROMPT_CHARS).optional(),
  /** Names under which a project keeps its instructions: the first that a folder has counts. */
  files: z.array(fileName).default(["AGENTS.md"]),
  /** Those of a folder below the workspace's own are shown when the agent first works there. */
  nested: z.boolean().default(true),
  /** Of the workspace's own. Source: survey of command lines, 1. */
  maxBytes: z.number().int().min(0).max(262_144).default(32_768),
});

export const agentConfigSchema = z.strictObject({
  model: z.string().regex(/\S/, "the name of a model, such as openai/gpt-6.1-sol").optional(),
  models: z.record(z.string(), modelConfigSchema).default({}),
  providers: z.record(z.string().regex(/^[a-z0-9][a-z0-9_.-]*$/i), providerConfigSchema).default({}),
  context: contextConfigSchema.prefault({}),
  tools: toolsConfigSchema.default({}),
  sandbox: sandboxConfigSchema.prefault({}),
  limits: limitsConfigSchema.prefault({}),
  git: gitConfigSchema.prefault({}),
  /** Stands instead of our own words on how to work. */
  systemPrompt: z.string().min(1).max(MAX_OWN_PROMPT_CHARS).optional(),
  instructions: instructionsSchema.prefault({}),
  skills: skillsSchema.prefault({}),
  questions: questionsSchema.prefault({}),
  permissions: permissionsSchema.default([]),
  delegate: delegateConfigSchema.prefault({}),
  mcpServers: mcpServersSchema.default({}),
});
export type AgentConfig = z.infer<typeof agentConfigSchema>;

/** What a session runs by: the file's settings with models and prices resolved. Kept in `sessions.config`. */
export const runConfigSchema = z.object({
  ...modelTargetSchema.shape,
  /** Who writes summaries, if that is not the session's own model: with its own window, wire and price. */
  summariser: z.object(modelTargetSchema.shape).partial({ input: true }).optional(),
  /** Who takes a step over if the session's model fails, in order. */
  fallback: z.array(z.object(modelTargetSchema.shape)).optional(),
  context: contextConfigSchema,
  tools: z.record(z.string(), toolConfigSchema.optional()),
  /** Absent means all at once. */
  parallelCalls: parallelSchema.optional(),
  sandbox: sandboxConfigSchema.extend({
    inherited: inheritedSchema.optional(),
    container: containerSchema.optional(),
  }),
  limits: limitsConfigSchema,
  /** Of a session that works on a repository. */
  repository: sessionGitSchema.optional(),
  systemPrompt: z.string().optional(),
  /** Sessions from before there was this have the defaults. */
  instructions: instructionsSchema.optional(),
  skills: sessionSkillsSchema.optional(),
  questions: questionsSchema.optional(),
  permissions: permissionsSchema.optional(),
  /** Sessions from before there was this do not delegate. */
  delegate: sessionDelegateSchema.optional(),
  /** Those that are enabled. */
  mcpServers: mcpServersSchema.optional(),
  /** It has the tools of the operator's own that its first worker had. */
  ownTools: z.boolean().optional(),
  /** It plans first: nothing is changed before a person has approved the plan. */
  plan: z.boolean().optional(),
  /** Its last answer is JSON by this schema. */
  outputSchema: outputSchemaSchema.optional(),
  priority: prioritySchema.optional(),
  tenant: tenantSchema.optional(),
});
export type RunConfig = z.infer<typeof runConfigSchema>;
