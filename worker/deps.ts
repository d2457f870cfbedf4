/** Turns the configuration into ports: the one place where adapters are chosen. */
import type { NativeConnection } from "@temporalio/worker";
import { defaultModel, REHEARSAL_MODEL, currentModelFacts } from "../activities/config/models.ts";
import { agentConfigSchema, type RunConfig } from "../activities/config/agent-config.ts";
import type { Sanitizer } from "../activities/redaction/sanitizer.ts";
import type { AgentDeps } from "../activities/index.ts";
import { createMcp } from "../activities/mcp/load-mcp.ts";
import { endOrphanPrograms } from "../activities/mcp/orphan-programs.ts";
import { createAiSdkModel } from "../activities/model/ai-sdk.ts";
import { resolveRun } from "../activities/config/resolve-run.ts";
import { Suspects } from "../activities/runtime/lost-attempts.ts";
import { CountedSaves } from "../activities/runtime/counted-saves.ts";
import { connectDocker } from "../activities/sandbox/docker/connect-docker.ts";
import { withAttached } from "../activities/sandbox/docker/attached.ts";
import { createDockerHost } from "../activities/sandbox/docker/docker.ts";
import { noticeSender } from "./send-notice.ts";
import { temporalClient } from "../temporal/temporal-client.ts";
import { temporalRuns } from "../temporal/session-runs.ts";
import { migrateStore, openStore, type Store } from "../activities/store/db.ts";
import { openObjectStore } from "../activities/store/object-store.ts";
import { checkObjectStore } from "../temporal/object-store-probe.ts";
import { mayNotMigrate } from "../temporal/postgres-probe.ts";
import { hasNewerTables } from "../activities/store/schema-version.ts";
import { toApplicationName } from "../activities/store/worker-lease.ts";
import { setMoneyRules } from "../activities/store/budget-states.ts";
import { readInstallation } from "../activities/store/installation.ts";
import { cachedFor } from "../activities/sandbox/shared-work.ts";
import { toolRegistry } from "../activities/tools/index.ts";
import { machineNetwork } from "../activities/web/fetch-page.ts";
import type { WorkerConfig } from "./config.ts";
import type { TelemetrySettings } from "../activities/runtime/telemetry/telemetry.ts";
import type { Logger } from "./logger.ts";
import type { Service } from "../activities/process/service.ts";
import { opened, ServiceList } from "./services.ts";
import { hasSearchAttributes } from "../temporal/search-attributes.ts";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { oneLine } from "../activities/tools/paths.ts";
import { reasonOf } from "../activities/contract/errors.ts";
import { parseOwnTools, type OwnTools } from "../activities/tools/own/own-tools.ts";
import { ServiceMissing } from "../temporal/service-missing.ts";

export interface BoundDeps {
  readonly deps: AgentDeps;
  /** What they work with, to be started before it is used. */
  readonly services: Service;
}

export interface WorkerTools {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly sanitizer: Sanitizer;
  readonly logger: Logger;
  /** The worker's, by which others find what it left in Postgres if it dies. */
  readonly identity: string;
}

/** @throws ServiceMissing if what the operator wrote cannot be used; what a database lacks or refuses, the start of the services */
export async function bindDeps(config: WorkerConfig, tools: WorkerTools): Promise<BoundDeps> {
  const { connection, namespace, sanitizer, logger } = tools;
  const ownTools = config.toolsFile === undefined ? undefined : await loadOwnTools(config.toolsFile);
  const searchAttributes = await hasSearchAttributes(connection, namespace, logger);
  const telemetry = config.telemetry && (await loadTelemetry(config.telemetry, config.buildId, logger));
  const store = openWorkerStore(config, tools);
  const sandboxHost = openSandboxHost(config, store, logger);
  const mcp = openMcp(config, store, logger);
  const { providers: environment, identities } = config;
  const mask = (text: string) => sanitizer.clean(text);
  const model = createAiSdkModel({ environment, identities, mask });
  // Loading the SDK takes 0.3 s: it begins before the first task needs it.
  model.warm().catch((error: unknown) => logger.error({ err: error }, "the model SDK does not load"));
  const temporal = temporalClient({ connection, namespace }, config.codecKeys);
  const suspects = new Suspects();
  const deps = {
    store,
    suspects,
    countedSaves: new CountedSaves(store.db, suspects),
    announcements: store.announcements,
    model,
    sandboxHost,
    hostDisk: config.hostDisk,
    sessionRuns: temporalRuns(
      temporal,
      { db: store.db, taskQueue: config.queues.workflows },
      sanitizer.clean,
    ),
    sanitizer,
    tools: toolRegistry,
    ownTools,
    mcp,
    web: machineNetwork(),
    git: config.git,
    policy: config.policy,
    keys: config.keys,
    notices: config.notify && {
      send: noticeSender(config.notify.url),
      withContent: config.notify.withContent,
    },
    defaultConfig: defaultConfig(config),
    telemetry,
    idsOnly: config.idsOnly,
    heartbeatMs: config.heartbeatMs,
    // The workflow's own default need not be in its history.
    heartbeatTimeoutMs: config.heartbeatTimeoutMs === 30_000 ? undefined : config.heartbeatTimeoutMs,
    searchAttributes,
    taskQueues: separateQueues(config),
  };
  const services = [
    opened(() => store.close()),
    { start: () => prepareTables(store, config, logger), stop: async () => undefined },
    store.announcements,
    opened(() => sandboxHost.close()),
    opened(() => mcp.close()),
    opened(async () => telemetry?.close()),
  ];
  return { deps, services: new ServiceList(services, logger) };
}

function openWorkerStore(config: WorkerConfig, { logger, identity }: WorkerTools): Store {
  return openStore({
    url: config.databaseUrl,
    objects: config.objectStore === undefined ? undefined : openObjectStore(config.objectStore),
    maxConnections: config.databaseConnections,
    silenceMs: config.databaseTimeoutMs,
    applicationName: toApplicationName(identity),
    onError: (error) =>
      logger.warn({ reason: error.message }, "a database connection was lost; the pool replaces it"),
  });
}

async function prepareTables(store: Store, config: WorkerConfig, logger: Logger): Promise<void> {
  await checkObjectStore(store.db.objects);
  await migrateStore(store).catch((error: unknown) => {
    throw mayNotMigrate(error, config.databaseUrl) ?? error;
  });
  await setMoneyRules(store.db, config.policy ?? {});
  if (await hasNewerTables(store.db))
    logger.warn("this worker is older than the database; if its tables do not match, it takes no more work");
}

function openSandboxHost(config: WorkerConfig, { db }: Store, logger: Logger) {
  const docker = connectDocker();
  const say = (line: string) => logger.info(line);
  const installation = cachedFor(Infinity, () => readInstallation(db));
  return withAttached(
    createDockerHost({
      docker,
      name: config.host,
      guardImage: config.guardImage,
      installation,
      keys: config.keys,
      say,
    }),
    { docker, isAllowed: config.allowContainers, installation, say },
  );
}

function openMcp(config: WorkerConfig, store: Store, logger: Logger) {
  const programs = config.policy?.mcpServers;
  if (programs !== undefined && endOrphanPrograms() > 0)
    logger.info("ended MCP servers that a killed worker left");
  return createMcp({ ...config.mcp, programs }, store);
}

/** The libraries take 0.3 s and some 20 MB, so they are loaded only if an endpoint is set. */
async function loadTelemetry(settings: TelemetrySettings, version: string, logger: Logger) {
  const { createOpenTelemetry } = await import("./telemetry/open-telemetry.ts");
  return createOpenTelemetry(settings, version, logger);
}

/** For sessions started from Temporal's own tools, which give only a task; undefined if no model is configured. */
function defaultConfig(config: WorkerConfig): RunConfig | undefined {
  const name =
    config.model ??
    defaultModel(config.providers) ??
    (config.providers["LONGHAUL_REHEARSAL_URL"] === undefined ? undefined : REHEARSAL_MODEL);
  if (name === undefined) return undefined;
  const settings = agentConfigSchema.parse(
    config.sandboxImage === undefined ? {} : { sandbox: { image: config.sandboxImage } },
  );
  const resolved = resolveRun(settings, name, config.providers, currentModelFacts(config.catalogue));
  return resolved.ok ? resolved.run : undefined;
}

/** Leaves out queues that are the workflow's own, which keeps eager dispatch. */
function separateQueues({ queues, hostTimeoutMs }: WorkerConfig): AgentDeps["taskQueues"] {
  const other = (name: string) => (name === queues.workflows ? undefined : name);
  const [models, admin, sandbox] = [other(queues.models), other(queues.admin), other(queues.sandbox)];
  return {
    models,
    admin,
    ...(sandbox === undefined ? {} : { sandbox, hostTimeoutMs }),
  };
}

/** @throws ServiceMissing (exit code 4) if the file cannot be loaded, or has something that is not a tool */
export async function loadOwnTools(path: string): Promise<OwnTools> {
  const file = resolve(path);
  try {
    const { default: exported } = (await import(pathToFileURL(file).href)) as { readonly default?: unknown };
    return parseOwnTools(exported);
  } catch (error) {
    throw new ServiceMissing({
      service: "The file of tools",
      address: file,
      problem: `LONGHAUL_TOOLS=${path} cannot be used; the worker was not started`,
      reason: oneLine(reasonOf(error), 500),
      fix: "Correct the file (docs/tools.md describes its form), or unset LONGHAUL_TOOLS.",
      cause: error,
    });
  }
}
