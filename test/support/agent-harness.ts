/** A whole agent for a test: real Temporal, Postgres and Docker, a worker in this process, a scripted model. */
import { sql } from "drizzle-orm";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client, WorkflowHandle } from "@temporalio/client";
import Dockerode from "dockerode";
import { inject } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import type { ClosedSession } from "../../activities/contract/activities.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { createActivities, type AgentDeps } from "../../activities/index.ts";
import { createMcp } from "../../activities/mcp/load-mcp.ts";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { temporalRuns } from "../../temporal/session-runs.ts";
import { readInstallation } from "../../activities/store/installation.ts";
import type { StoredPack } from "../../activities/store/workspace-pack.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { changedConfig, configOf, type ConfigChange } from "./run-config.ts";
import { sessionEvents, type SessionEvents } from "./session-events.ts";
import { createTestWorker } from "./test-worker.ts";
import type { codingAgent } from "../../workflows/index.ts";
import type { CodingAgentInput } from "../../workflows/run-input.ts";
import {
  startScriptedModel,
  type ModelScript,
  type ScriptedModelOptions,
  type ScriptedModelServer,
  type Turn,
} from "./scripted-model.ts";
import { CANARY } from "./canary.ts";
import { connectTo } from "./connections.ts";
import { eventually, within } from "./eventually.ts";
import { loneDeps } from "./lone-deps.ts";
import { perFile } from "./per-file.ts";
import { quietRuntime } from "./quiet-runtime.ts";
import { createTestDatabase, type TestDatabase } from "./test-database.ts";
import { startRun, startRunFor } from "./start-run.ts";

export { CANARY, eventually };

const RESULT_MS = 180_000;

export interface AgentHarness {
  readonly database: TestDatabase;
  readonly client: Client;
  readonly docker: Dockerode;
  readonly taskQueue: string;
  readonly deps: AgentDeps;
  /** Starts a session with its own scripted model. */
  start(script: ModelScript | Turn, options?: StartOptions): Promise<RunningSession>;
  /** The same to the end of its run. @throws WorkflowFailedError where the run fails */
  run(script: ModelScript | Turn, options?: StartOptions): Promise<RunningSession>;
  /** Wraps a session that something else starts, such as a fork; it uses the model of an existing session. */
  adopt(id: string, like: RunningSession): RunningSession;
  close(): Promise<void>;
}

export interface StartOptions {
  readonly task?: string;
  readonly config?: ConfigChange;
  readonly input?: CodingAgentInput;
  /** Whose session it is; default nobody's. */
  readonly owner?: string;
  /** Files that the session begins with, and the text of their AGENTS.md. */
  readonly workspace?: StoredPack | undefined;
  readonly instructions?: string | undefined;
  /** Models that the server lists, in addition to the usual ones or overriding them. */
  readonly served?: NonNullable<ScriptedModelOptions["models"]>;
  /** Called with the id before the session begins. */
  readonly named?: (id: string) => void;
  /** The server's tokenizer; default a real one, which is slow on very long conversations. */
  readonly countTokens?: NonNullable<ScriptedModelOptions["countTokens"]>;
}

export interface RunningSession extends SessionEvents {
  readonly id: string;
  readonly model: ScriptedModelServer;
  readonly handle: WorkflowHandle<typeof codingAgent>;
  result(): Promise<ClosedSession>;
  /** Signals a message and starts a run for it, as `say` does if the session has ended. */
  resume(text: string, messageId: string): Promise<WorkflowHandle<typeof codingAgent>>;
}

export async function startAgent(depsChanges: Partial<AgentDeps> = {}): Promise<AgentHarness> {
  quietRuntime();
  const database = await createTestDatabase(20);
  const taskQueue = `test-${randomBytes(4).toString("hex")}`;
  const docker = new Dockerode();
  // As of workers on the same database.
  const installation = () => readInstallation(database.store.db);
  const sandboxHost = createDockerHost({ docker, name: "test", installation });
  const { announcements } = database.store;
  await announcements.start();
  const models = new Map<string, ReturnType<typeof createAiSdkModel>>();
  const sanitizer = createSanitizer([CANARY]);
  const gitFolder = mkdtempSync(join(tmpdir(), "longhaul-git-"));
  const temporal = await connectTo(inject("temporalAddress"));
  const { client } = temporal;
  const deps = loneDeps(database.store, {
    announcements: {
      // Tests read the rows, so chunks are written as often as for a watched session.
      isWatched: () => true,
      onWatched: announcements.onWatched,
      announceStop: announcements.announceStop,
      onStop: (...of) => announcements.onStop(...of),
      sessionsAtWork: () => announcements.sessionsAtWork(),
    },
    // Each session has its own server, found by the cache key, which is the session's id.
    model: {
      ask: (request, onDelta, signal) => pick(models, request.cacheKey).ask(request, onDelta, signal),
    },
    sandboxHost,
    sessionRuns: temporalRuns(client, { db: database.store.db, taskQueue }, sanitizer.clean),
    sanitizer,
    mcp: createMcp({ variables: {} }),
    git: createGitAccess({
      PATH: process.env["PATH"],
      LONGHAUL_GIT_TOKEN: CANARY,
      LONGHAUL_GIT_FOLDER: gitFolder,
    }),
    // How long a pause or a reset from outside may take to arrive; stops are announced.
    heartbeatMs: 500,
    delegateLookMs: 1_000,
    ...depsChanges,
  });
  const worker = await createTestWorker({
    taskQueue,
    connection: temporal.native,
    activities: createActivities(deps),
    announceStop: announcements.announceStop,
  });
  const running = worker.run();
  const servers: ScriptedModelServer[] = [];
  const sessions: string[] = [];
  const agent: AgentHarness = {
    database,
    client,
    docker,
    taskQueue,
    deps,
    async run(script, options) {
      const session = await agent.start(script, options);
      await session.result();
      return session;
    },
    async start(script, options = {}) {
      const id = `test-${randomBytes(5).toString("hex")}`;
      const model = await startScriptedModel(script, {
        apiKey: CANARY,
        models: options.served,
        countTokens: options.countTokens,
      });
      servers.push(model);
      sessions.push(id);
      options.named?.(id);
      models.set(
        id,
        createAiSdkModel({
          environment: {
            OPENAI_API_KEY: CANARY,
            OPENAI_BASE_URL: model.baseUrl,
            GEMINI_BASE_URL: model.baseUrl.replace(/\/v1$/, "/v1beta"),
          },
          mask: sanitizer.clean,
        }),
      );
      await createSession(database.store, {
        id,
        task: options.task ?? "Do what is asked.",
        owner: options.owner,
        config: changedConfig(runConfig(), options.config),
        workspace: options.workspace,
        instructions: options.instructions,
      });
      const handle = await startRun(client, id, taskQueue, options.input);
      return runningSession(agent, { id, model, handle });
    },
    adopt(id, like) {
      sessions.push(id);
      models.set(id, pick(models, like.id));
      const handle = client.workflow.getHandle<typeof codingAgent>(id);
      return runningSession(agent, { id, model: like.model, handle });
    },
    async close() {
      for (const id of sessions)
        await client.workflow
          .getHandle(id)
          .terminate("the test is over")
          .catch(() => undefined);
      worker.shutdown();
      await running;
      const sandboxes = await sandboxHost.sessions();
      for (const id of sandboxes.filter((of) => sessions.includes(rootOf(of)))) await sandboxHost.remove(id);
      const { rows: bases } = await database.store.db.execute<{ key: string }>(sql`select key from bases`);
      for (const { key } of bases) await sandboxHost.bases?.forget(key);
      await deps.mcp?.close();
      await sandboxHost.close();
      await Promise.all([temporal.close(), ...servers.map((server) => server.close())]);
      rmSync(gitFolder, { recursive: true, force: true });
      await database.drop();
    },
  };
  return agent;
}

/** One agent for all tests of a file. */
export function useAgent(heartbeatMs?: number): AgentHarness {
  return perFile(() => startAgent(heartbeatMs === undefined ? {} : { heartbeatMs }));
}

/**
 * Without a network: a guarded network needs one more container for each sandbox. Nothing is kept at a session's end. Both have their
 * own tests.
 */
export const runConfig = (): RunConfig =>
  configOf({
    sandbox: { image: inject("sandboxImage"), memory: "512m", network: "none", park: { keep: 0 } },
  });

/** The session itself, or the parent of a delegate. */
const rootOf = (id: string): string => id.replace(/\.s\d+c\d+(e\d+)?$/, "");

function pick(models: ReadonlyMap<string, ReturnType<typeof createAiSdkModel>>, id: string) {
  const model = models.get(id) ?? models.get(rootOf(id));
  if (!model) throw new Error(`No model for session ${id}.`);
  return model;
}

function runningSession(
  { database, client, taskQueue }: Pick<AgentHarness, "client" | "taskQueue" | "database">,
  running: Pick<RunningSession, "id" | "model" | "handle">,
): RunningSession {
  const { id, handle } = running;
  return {
    ...sessionEvents(database.store, id),
    ...running,
    result: () => within(handle.result(), id, RESULT_MS),
    resume: (text, messageId) => startRunFor(client, id, taskQueue, { id: messageId, text }),
  };
}
