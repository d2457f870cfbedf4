/**
 * Many sessions under one worker, each held at its own point; one kill -9 for all, and the next worker at once.
 * Every point shares one wait for the lost heartbeat.
 */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client, Connection, type WorkflowHandle } from "@temporalio/client";
import { desc, eq } from "drizzle-orm";
import { inject } from "vitest";
import { connectDocker } from "../../../activities/sandbox/docker/connect-docker.ts";
import { removeBox } from "../remove-box.ts";
import { events } from "../../../activities/store/schema/index.ts";
import { createSession } from "../../../activities/store/sessions.ts";
import type { ServedRequest } from "../model-server/wire.ts";
import { dataConverter } from "../../../temporal/codec.ts";
import type { codingAgent } from "../../../workflows/index.ts";
import { runConfig } from "../agent-harness.ts";
import { CANARY } from "../canary.ts";
import type { SessionServices } from "../checker/collect.ts";
import { createClosers } from "../closers.ts";
import { emptyFolder } from "../empty-folder.ts";
import { eventually, within } from "../eventually.ts";
import { makeRemote, onRepository } from "../remotes.ts";
import { startSharedModel } from "../shared-model.ts";
import { startRun } from "../start-run.ts";
import { changedConfig } from "../run-config.ts";
import { createTestDatabase } from "../test-database.ts";
import { startWorkerProcess } from "../worker-process.ts";
import { createRowHolds } from "./row-holds.ts";
import type { CrashPoint, Hold } from "./point.ts";
import { restOf } from "./rests.ts";
import { CRASH_SCRIPTS, playCrashScript, type ScriptName } from "./scripts.ts";

export interface CrashedSession {
  readonly id: string;
  readonly model: { readonly log: readonly ServedRequest[] };
  /** Its outcome, within minutes from now. Rejects if the run failed. */
  result(): Promise<unknown>;
}

export interface CrashMatrix {
  readonly services: SessionServices;
  /** By the point's name. */
  readonly crashed: ReadonlyMap<string, CrashedSession>;
  /** Undisturbed runs to compare with. */
  readonly undisturbed: ReadonlyMap<ScriptName, CrashedSession>;
  close(): Promise<void>;
}

/** How long all sessions may take to reach their points on a busy machine. */
const REACH_MS = 540_000;
const RESULT_MS = 540_000;

/** Long timeouts, because a session waits for the others to reach their points. */
const PATIENT = { connectTimeout: 900_000, firstTokenTimeout: 900_000, silenceTimeout: 900_000 };

interface Held {
  readonly point: CrashPoint;
  readonly reached: () => Promise<boolean>;
  readonly release: () => Promise<void>;
}

/** A budget that is never used up, of each tenant. */
const POLICY = "budgets: [{ per: tenant, period: month, usd: 1000 }]\n";

/** Brings all sessions to their points, kills, and starts the next worker. Callers await the results. */
export async function runCrashMatrix(points: readonly CrashPoint[]): Promise<CrashMatrix> {
  const database = await createTestDatabase(10);
  const closers = createClosers();
  const inOwnFolder = { end: (end: () => Promise<void> | void) => closers.add(async () => end()) };
  const holds = await createRowHolds(database);
  const address = inject("temporalAddress");
  const connection = await Connection.connect({ address });
  const client = new Client({ connection, dataConverter });
  const docker = connectDocker();
  const model = await startSharedModel({
    models: { "gpt-4o": { window: 128_000, maxOutput: 16_384 } },
  });
  const policy = join(emptyFolder(inOwnFolder.end), "policy.yaml");
  writeFileSync(policy, POLICY);
  const remote = makeRemote(undefined, inOwnFolder);
  const taskQueue = `crash-${randomBytes(4).toString("hex")}`;
  const handles: WorkflowHandle<typeof codingAgent>[] = [];
  const services: SessionServices = { database, client, docker };
  const startWorker = () =>
    startWorkerProcess({
      DATABASE_URL: database.url,
      // Each held write keeps a connection.
      DATABASE_CONNECTIONS: String(points.length + 30),
      // The connection stays silent until all sessions have reached their points.
      DATABASE_TIMEOUT_MS: String(REACH_MS),
      TEMPORAL_ADDRESS: address,
      OPENAI_BASE_URL: model.baseUrl,
      OPENAI_API_KEY: CANARY,
      SANDBOX_IMAGE: inject("sandboxImage"),
      LONGHAUL_TASK_QUEUE: taskQueue,
      LONGHAUL_POLICY: policy,
      LONGHAUL_LOG_LEVEL: "warn",
    });
  /** Opens when all sessions are at their points whose time may pass. */
  const gate = Promise.withResolvers<void>();
  let isClosed = false;

  /** Starts a session; `model` reports a request at the point where it is held. */
  const start = async (scriptName: ScriptName, hold: Hold | undefined) => {
    const script = CRASH_SCRIPTS[scriptName];
    const id = `test-${randomBytes(5).toString("hex")}`;
    const config = changedConfig(runConfig(), {
      ...script.config,
      ...(script.hasTenant ? { tenant: id } : {}),
      ...(script.hasRemote ? onRepository(remote.url) : {}),
      limits: PATIENT,
    });
    await createSession(database.store, { id, task: "Do what is asked.", config });
    let wasAsked = false;
    model.serve(
      id,
      playCrashScript(script, async ({ purpose, step }, reply) => {
        const signal = purpose === "step" ? script.signals?.[step] : undefined;
        if (signal) await client.workflow.getHandle(id).signal(signal.name, signal.message);
        if (script.late === step) await gate.promise;
        if (hold?.at !== "model" || hold.purpose !== purpose) return reply;
        if (hold.step !== undefined && hold.step !== step) return reply;
        wasAsked = true;
        return hold.half
          ? { parts: [{ type: "text", text: "This half is never" }, { type: "hang" }] }
          : { beforeHeaders: "hang" };
      }),
    );
    const row = hold?.at === "row" ? await holds.hold(id, hold.row) : undefined;
    const handle = await startRun(client, id, taskQueue);
    handles.push(handle);
    const session: CrashedSession = {
      id,
      model: {
        get log() {
          return model.logOf(id);
        },
      },
      result: () => within(handle.result(), id, RESULT_MS),
    };
    const rest = script.rest && restOf(services, id, script.rest);
    if (hold?.at !== "rest") void rest?.bringOnWhenReached(() => isClosed).catch(() => undefined);
    return { session, row, rest, hasAsked: () => wasAsked };
  };

  const crashed = new Map<string, CrashedSession>();
  const heldPoints: Held[] = [];
  const first = await startWorker();
  for (const point of points) {
    const { session, row, rest, hasAsked } = await start(point.script, point.hold);
    crashed.set(point.name, session);
    const { hold } = point;
    heldPoints.push({
      point,
      reached: async () => {
        if (hold.at === "model") return hasAsked();
        if (hold.at === "rest") return (await rest?.isReached()) ?? false;
        return (await row?.reached()) ?? false;
      },
      release: async () => {
        if (hold.at === "row") await row?.release(hold.fate);
        if (hold.at === "rest") await rest?.bringOn();
      },
    });
  }
  const untilReached = async (held: readonly Held[]) => {
    for (const { point, reached } of held)
      await eventually(`it reaches: ${point.name}`, reached, REACH_MS).catch(async (error: Error) => {
        const stand = await standOf(services, crashed.get(point.name)?.id ?? "");
        throw new Error(`${error.message}\n${stand}\n${first.log()}`, { cause: error });
      });
  };
  const requestsOf = (held: readonly Held[]) =>
    held.reduce((sum, { point }) => sum + (crashed.get(point.name)?.model.log.length ?? 0), 0);
  const isLate = ({ point }: Held) => CRASH_SCRIPTS[point.script].late !== undefined;
  await untilReached(heldPoints.filter((held) => !isLate(held)));
  gate.resolve();
  await untilReached(heldPoints.filter(isLate));
  const askedBefore = requestsOf(heldPoints.filter(isLate));
  await first.kill();
  // Otherwise their time was over before the worker was killed.
  if (requestsOf(heldPoints.filter(isLate)) !== askedBefore)
    throw new Error("A session did not rest any more.");
  for (const { release } of heldPoints) await release();
  const second = await startWorker();
  const undisturbed = new Map<ScriptName, CrashedSession>();
  for (const name of new Set(points.map((point) => point.script)))
    undisturbed.set(name, (await start(name, undefined)).session);
  return {
    services,
    crashed,
    undisturbed,
    async close() {
      isClosed = true;
      for (const handle of handles) await handle.terminate("the test is over").catch(() => undefined);
      await second.kill();
      for (const { workflowId } of handles) await removeBox(docker, workflowId);
      await Promise.all([connection.close(), model.close(), holds.close()]);
      await closers.close();
      await database.drop();
    },
  };
}

/** What a session did so far and waits for, for the message of a test that waited in vain. */
async function standOf({ database, client }: SessionServices, id: string): Promise<string> {
  const list = await database.store.db
    .select({ step: events.step, type: events.type, data: events.data })
    .from(events)
    .where(eq(events.sessionId, id))
    .orderBy(desc(events.seq))
    .limit(40);
  const run = await client.workflow.getHandle(id).describe();
  const pending = (run.raw.pendingActivities ?? []).map(({ activityType, attempt, lastFailure }) =>
    [activityType?.name, attempt, lastFailure?.message].join(" "),
  );
  const last = list.map(({ step, type, data }) => `${step} ${type} ${JSON.stringify(data).slice(0, 200)}`);
  return [run.status.name, ...pending, ...last].join("\n");
}
