/** The worker's configuration, and the only reader of its environment. Temporal's package reads Temporal's own variables. */
import { hostname } from "node:os";
import { z } from "zod";
import { createGitAccess, type GitAccess } from "../activities/git/git-access.ts";
import { gitHubAppSettings, gitHubAppTrouble } from "../activities/git/github-app.ts";
import { Identities } from "../activities/model/identity/identities.ts";
import { createMcpAccess, type McpAccess } from "../activities/mcp/access.ts";
import { reasonOf } from "../activities/contract/errors.ts";
import { readStoreAddress } from "../activities/store/object-store.ts";
import { PostgresAddressWrong, readPostgresAddress } from "../activities/store/postgres-address.ts";
import { secretsOf } from "../activities/redaction/secret-values.ts";
import { issueTexts } from "../activities/config/issue-text.ts";
import { isKeyVariable } from "../activities/config/model-target.ts";
import { providerVariables } from "../activities/config/providers.ts";
import { DEFAULT_IMAGE, imageNamed } from "../activities/config/sandbox-settings.ts";
import { type DiskLimit, diskLimitSchema, imageSchema } from "../activities/config/setting-values.ts";
import {
  keysSchema,
  keyVariable,
  type KeyDefinitions,
  type KeyRing,
} from "../activities/config/key-settings.ts";
import type { OperatorPolicy } from "../activities/config/operator-policy.ts";
import { readPolicy } from "./read-policy.ts";
import { WrongSettings, checkSurroundings, ServiceMissing } from "../temporal/service-missing.ts";
import { parseCodecKeys, type CodecKey } from "../temporal/codec.ts";
import type { TelemetrySettings } from "../activities/runtime/telemetry/telemetry.ts";

/** A wrong value is answered with the form of a right one, and an example of it. */
const whole = (example: number) => {
  const error = `expected a whole number above 0, such as ${example}`;
  return z.coerce.number({ error }).int({ error }).positive({ error });
};
const address = (example: string) =>
  optional(z.url({ protocol: /^https?$/, error: `expected an address such as ${example}` }).optional());
function isStoreAddress(value: string, context: z.RefinementCtx): void {
  try {
    readStoreAddress(value);
  } catch (error) {
    context.addIssue({ code: "custom", message: reasonOf(error) });
  }
}

const rate = { error: "expected a number above 0, such as 2.5" };
/** An empty variable counts as one that is not set. */
const optional = <T extends z.ZodType>(schema: T) => z.preprocess((value) => value || undefined, schema);
const text = optional(z.string().optional());
const number = (fallback: number) => optional(whole(fallback).default(fallback));

const schema = z.object({
  DATABASE_URL: z.string().min(1, "set it to postgres://user:password@host:5432/database"),
  DATABASE_CONNECTIONS: number(20),
  DATABASE_TIMEOUT_MS: number(45_000),
  LONGHAUL_MODEL: text,
  LONGHAUL_CATALOGUE: text,
  SANDBOX_IMAGE: optional(imageSchema.optional()),
  LONGHAUL_GUARD_IMAGE: optional(imageSchema.optional()),
  LONGHAUL_HOST: text,
  LONGHAUL_STORE: optional(z.string().superRefine(isStoreAddress).optional()),
  LONGHAUL_HOST_DISK: optional(diskLimitSchema.prefault("20%")),
  LONGHAUL_ALLOW_CONTAINERS: text,
  LONGHAUL_OLD_RUNC: optional(z.enum(["warn", "refuse"]).default("refuse")),
  LONGHAUL_BUILD_ID: text,
  LONGHAUL_DEPLOYMENT: text,
  LONGHAUL_VERSIONING: optional(z.enum(["off", "auto", "pinned"]).default("off")),
  LONGHAUL_TASK_QUEUE: optional(z.string().default("longhaul")),
  LONGHAUL_MODELS_QUEUE: text,
  LONGHAUL_SANDBOX_QUEUE: text,
  LONGHAUL_ADMIN_QUEUE: text,
  LONGHAUL_HOST_TIMEOUT_SECONDS: number(90),
  LONGHAUL_MODEL_CALLS_PER_SECOND: optional(z.coerce.number(rate).positive(rate).optional()),
  LONGHAUL_ACTIVITY_SLOTS: number(100),
  LONGHAUL_HEARTBEAT_MS: number(10_000),
  LONGHAUL_HEARTBEAT_TIMEOUT_MS: number(30_000),
  LONGHAUL_SHUTDOWN_GRACE_MS: number(10_000),
  LONGHAUL_REAP_MINUTES: number(10),
  LONGHAUL_LOG_LEVEL: optional(z.enum(["trace", "debug", "info", "warn", "error"]).default("info")),
  LONGHAUL_READY_FILE: text,
  LONGHAUL_NOTIFY_URL: address("https://hooks.example.com/longhaul"),
  LONGHAUL_NOTIFY_CONTENT: text,
  LONGHAUL_POLICY: text,
  LONGHAUL_KEYS: text,
  LONGHAUL_TOOLS: text,
  LONGHAUL_HISTORY: optional(z.enum(["full", "ids"]).default("full")),
  LONGHAUL_CODEC_KEYS: text,
  LONGHAUL_OTEL_CONTENT: optional(z.enum(["none", "full"]).default("none")),
  OTEL_SDK_DISABLED: text,
  OTEL_EXPORTER_OTLP_ENDPOINT: address("http://127.0.0.1:4318"),
  OTEL_EXPORTER_OTLP_PROTOCOL: optional(z.literal("http/protobuf").optional()),
  OTEL_TRACES_EXPORTER: optional(z.enum(["otlp", "none"]).default("otlp")),
  OTEL_METRICS_EXPORTER: optional(z.enum(["otlp", "none"]).default("otlp")),
  OTEL_BSP_SCHEDULE_DELAY: number(5_000),
  OTEL_METRIC_EXPORT_INTERVAL: number(60_000),
});

export interface WorkerConfig {
  readonly databaseUrl: string;
  readonly databaseConnections: number;
  /** How long Postgres may leave a query without an answer before the connection is abandoned, in ms. */
  readonly databaseTimeoutMs: number;
  /** Keys, tokens and addresses of model providers, by the names of their variables; no other secret of this worker. */
  readonly providers: Readonly<Record<string, string | undefined>>;
  /** The model of a session that is started from Temporal's own tools. */
  readonly model: string | undefined;
  /** A file with a newer catalogue of models than this version's own. */
  readonly catalogue: string | undefined;
  readonly sandboxImage: string | undefined;
  /** The operator's image for the container that sets up a sandbox's firewall: it has python3 and nft. */
  readonly guardImage: string;
  /** This machine's name, under which Postgres records its sandboxes. */
  readonly host: string;
  /** Address of the object store for large saves; undefined: they are in Postgres, too. */
  readonly objectStore: string | undefined;
  /** How much bases and stopped sandboxes may take on this machine's engine. */
  readonly hostDisk: DiskLimit;
  /** Whether sessions may work in other people's containers on this machine's engine. */
  readonly allowContainers: boolean;
  /** Whether the worker starts on an engine whose runc lacks fixes of known container escapes. */
  readonly oldRunc: "warn" | "refuse";
  readonly buildId: string;
  /** Temporal knows this worker as the version `buildId` of a deployment; absent: the worker has no version. */
  readonly versioning: { readonly deployment: string; readonly behavior: "auto" | "pinned" } | undefined;
  readonly queues: TaskQueues;
  /**
   * How long a call may wait for the queue of the host that has its sandbox, in ms, before the host counts as lost and
   * another host creates a new sandbox. Longer than a host's worker is away during a deploy.
   */
  readonly hostTimeoutMs: number;
  readonly activitySlots: number;
  /**
   * How often an activity sends a heartbeat, in ms: Temporal writes each one down. A cancel does not wait for a heartbeat, because
   * it is announced (activities/store/announcements.ts); a pause or terminate from outside does. Source: requirement 9.
   */
  readonly heartbeatMs: number;
  /** How long an activity may go without a heartbeat before another worker gets it, in ms. Source: requirement 7.1. */
  readonly heartbeatTimeoutMs: number;
  /** How long running activities may continue after SIGTERM before they are handed to another worker, in ms. */
  readonly shutdownGraceMs: number;
  readonly reapMs: number;
  readonly logLevel: "trace" | "debug" | "info" | "warn" | "error";
  /** Written once the worker polls, removed when it ends. */
  readonly readyFile: string | undefined;
  /**
   * What git may use: LONGHAUL_GIT_TOKEN, one for each host, LONGHAUL_GITHUB_APP_ID with LONGHAUL_GITHUB_APP_KEY_FILE and
   * LONGHAUL_GITHUB_APP_URL, LONGHAUL_GIT_SSH_KEY_FILE, LONGHAUL_GIT_FOLDER; and LONGHAUL_GIT_SIGNING_KEY_FILE, its key for commits.
   */
  readonly git: GitAccess;
  /** What MCP servers may get: LONGHAUL_MCP_<NAME>_TOKEN, the variables in their headers, LONGHAUL_CREDENTIALS_KEY. */
  readonly mcp: McpAccess;
  /** Where notices of questions and ended sessions are posted to, and whether they include texts. */
  readonly notify: { readonly url: string; readonly withContent: boolean } | undefined;
  /** What sessions may ask for: LONGHAUL_POLICY. */
  readonly policy: OperatorPolicy | undefined;
  /**
   * What sandboxes can use and not read: `keys` of the policy; without a policy LONGHAUL_KEYS, from the person's own file. Values
   * are LONGHAUL_KEY_<NAME>.
   */
  readonly keys: KeyRing;
  /** Who this worker is at the policy's providers. */
  readonly identities: Identities;
  /** The file with the operator's own tools. */
  readonly toolsFile: string | undefined;
  /** Traces and metrics; undefined if OTEL_EXPORTER_OTLP_ENDPOINT is not set. */
  readonly telemetry: TelemetrySettings | undefined;
  /** Only ids and codes go to Temporal. */
  readonly idsOnly: boolean;
  /** The first key encrypts what Temporal sees; without keys, nothing is encrypted. */
  readonly codecKeys: readonly CodecKey[];
  /** Values that must never be shown. */
  readonly secrets: readonly string[];
}

/** By role; by default all share one queue, because eager dispatch works only within a queue. */
interface TaskQueues {
  readonly workflows: string;
  readonly models: string;
  readonly sandbox: string;
  readonly admin: string;
  /** Limit of the models' queue over all workers; it needs a separate queue. */
  readonly modelCallsPerSecond: number | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** @throws ServiceMissing if DATABASE_URL is not set or a GitHub App's key cannot be used, Error that names each wrong variable, or what is wrong with the policy */
export function readWorkerConfig(environment: Environment = process.env): WorkerConfig {
  const e = parsed(environment);
  const policy = e.LONGHAUL_POLICY === undefined ? undefined : readPolicy(e.LONGHAUL_POLICY);
  checkGitHubApp(environment);
  checkSurroundings(environment);
  return {
    databaseUrl: e.DATABASE_URL,
    databaseConnections: e.DATABASE_CONNECTIONS,
    databaseTimeoutMs: e.DATABASE_TIMEOUT_MS,
    providers: Object.fromEntries(
      Object.entries(environment).filter(
        ([variable, value]) => value && (isKeyVariable(variable) || providerVariables.includes(variable)),
      ),
    ),
    model: e.LONGHAUL_MODEL,
    catalogue: e.LONGHAUL_CATALOGUE,
    sandboxImage: e.SANDBOX_IMAGE && imageNamed(e.SANDBOX_IMAGE),
    guardImage: e.LONGHAUL_GUARD_IMAGE ?? DEFAULT_IMAGE,
    host: e.LONGHAUL_HOST ?? hostname(),
    objectStore: e.LONGHAUL_STORE,
    hostDisk: e.LONGHAUL_HOST_DISK,
    allowContainers: e.LONGHAUL_ALLOW_CONTAINERS === "1",
    oldRunc: e.LONGHAUL_OLD_RUNC,
    buildId: e.LONGHAUL_BUILD_ID ?? "local",
    versioning: versioningOf(e),
    queues: queuesOf(e),
    hostTimeoutMs: e.LONGHAUL_HOST_TIMEOUT_SECONDS * 1_000,
    activitySlots: e.LONGHAUL_ACTIVITY_SLOTS,
    // One heartbeat may be late or lost without a timeout.
    heartbeatMs: Math.min(e.LONGHAUL_HEARTBEAT_MS, e.LONGHAUL_HEARTBEAT_TIMEOUT_MS / 3),
    heartbeatTimeoutMs: e.LONGHAUL_HEARTBEAT_TIMEOUT_MS,
    shutdownGraceMs: e.LONGHAUL_SHUTDOWN_GRACE_MS,
    reapMs: e.LONGHAUL_REAP_MINUTES * 60_000,
    logLevel: e.LONGHAUL_LOG_LEVEL,
    readyFile: e.LONGHAUL_READY_FILE,
    git: createGitAccess(environment),
    mcp: createMcpAccess(environment),
    notify:
      e.LONGHAUL_NOTIFY_URL === undefined
        ? undefined
        : { url: e.LONGHAUL_NOTIFY_URL, withContent: e.LONGHAUL_NOTIFY_CONTENT === "1" },
    toolsFile: e.LONGHAUL_TOOLS,
    policy,
    keys: {
      definitions: policy === undefined ? keysIn(e.LONGHAUL_KEYS) : (policy.keys ?? {}),
      valueOf: (name) => environment[keyVariable(name)],
    },
    identities: new Identities({ providers: policy?.providers ?? {}, environment }),
    telemetry: telemetryOf(e),
    idsOnly: e.LONGHAUL_HISTORY === "ids",
    codecKeys: parseCodecKeys(e.LONGHAUL_CODEC_KEYS),
    secrets: secretsOf(environment),
  };
}

function parsed(environment: Environment): z.infer<typeof schema> {
  if (!environment["DATABASE_URL"]) {
    throw new ServiceMissing({
      service: "Postgres",
      address: "DATABASE_URL",
      problem: "has no address",
      reason: "DATABASE_URL is not set",
      fix: "Set it to postgres://user:password@host:5432/database, or use `longhaul up`, which brings up its own.",
    });
  }
  checkDatabaseUrl(environment["DATABASE_URL"], environment);
  const result = schema.safeParse(environment);
  if (!result.success) {
    const wrong = issueTexts(result.error, schema);
    throw new WrongSettings(`The worker's environment is wrong; nothing was started.\n${wrong.join("\n")}`);
  }
  return result.data;
}

/** @throws WrongSettings that names what is wrong */
function keysIn(json: string | undefined): KeyDefinitions {
  const wrong = (why: string) =>
    new WrongSettings(`The worker's environment is wrong; nothing was started.\nLONGHAUL_KEYS: ${why}`);
  let content: unknown;
  try {
    content = JSON.parse(json ?? "{}");
  } catch (error) {
    throw wrong((error as Error).message);
  }
  const result = keysSchema.safeParse(content);
  if (result.success) return result.data;
  throw wrong(issueTexts(result.error, keysSchema).join("; "));
}

function checkGitHubApp(environment: Environment): void {
  const settings = gitHubAppSettings(environment);
  const wrong = settings && gitHubAppTrouble(settings);
  if (wrong === undefined) return;
  const { message: problem, fix } = wrong.trouble;
  throw new ServiceMissing({
    service: "GitHub App",
    address: "LONGHAUL_GITHUB_APP_KEY_FILE",
    problem: `cannot be used: ${problem}`,
    fix,
  });
}

/** @throws WrongSettings for an address with which nothing can be asked */
function checkDatabaseUrl(url: string, environment: Environment): void {
  try {
    readPostgresAddress(url, environment);
  } catch (error) {
    if (!(error instanceof PostgresAddressWrong)) throw error;
    throw new WrongSettings(
      `The worker's environment is wrong; nothing was started.\nDATABASE_URL: ${error.message}`,
    );
  }
}

/** @throws WrongSettings for a rate that would not be kept: eager activities ignore a queue's rate */
function queuesOf(e: z.infer<typeof schema>): TaskQueues {
  const workflows = e.LONGHAUL_TASK_QUEUE;
  const models = e.LONGHAUL_MODELS_QUEUE ?? workflows;
  if (e.LONGHAUL_MODEL_CALLS_PER_SECOND !== undefined && models === workflows)
    throw new WrongSettings(
      "The worker's environment is wrong; nothing was started.\nLONGHAUL_MODEL_CALLS_PER_SECOND needs LONGHAUL_MODELS_QUEUE, a queue for model calls alone.",
    );
  return {
    workflows,
    models,
    sandbox: e.LONGHAUL_SANDBOX_QUEUE ?? workflows,
    admin: e.LONGHAUL_ADMIN_QUEUE ?? workflows,
    modelCallsPerSecond: e.LONGHAUL_MODEL_CALLS_PER_SECOND,
  };
}

/** @throws WrongSettings if workers of two versions would be indistinguishable */
function versioningOf(e: z.infer<typeof schema>): WorkerConfig["versioning"] {
  const { LONGHAUL_VERSIONING: behavior, LONGHAUL_DEPLOYMENT: deployment, LONGHAUL_BUILD_ID: build } = e;
  if (behavior === "off") return undefined;
  if (deployment === undefined || build === undefined)
    throw new WrongSettings(
      `The worker's environment is wrong; nothing was started.\nLONGHAUL_VERSIONING=${behavior} needs LONGHAUL_DEPLOYMENT, the name that all versions share, and LONGHAUL_BUILD_ID, that of this one.`,
    );
  return { deployment, behavior };
}

function telemetryOf(e: z.infer<typeof schema>): TelemetrySettings | undefined {
  if (e.OTEL_EXPORTER_OTLP_ENDPOINT === undefined || e.OTEL_SDK_DISABLED === "true") return undefined;
  return {
    withContent: e.LONGHAUL_OTEL_CONTENT === "full",
    traces: e.OTEL_TRACES_EXPORTER === "otlp",
    metrics: e.OTEL_METRICS_EXPORTER === "otlp",
    scheduleMs: e.OTEL_BSP_SCHEDULE_DELAY,
    intervalMs: e.OTEL_METRIC_EXPORT_INTERVAL,
  };
}
