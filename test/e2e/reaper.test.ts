/** Which sandboxes of killed workers are removed, with real runs in Temporal and real sandboxes. */
import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { expect, it } from "vitest";
import { eq } from "drizzle-orm";
import { recordSandbox } from "../../activities/store/sandboxes.ts";
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import { sessions } from "../../activities/store/schema/index.ts";
import { createSession, findSession, setContainer } from "../../activities/store/sessions.ts";
import { sandboxName, createOptions } from "../../activities/sandbox/docker/profile.ts";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { type SandboxHost, sandboxSpec, type SandboxSpec } from "../../activities/sandbox/sandbox-host.ts";
import { listedAsRunning } from "../../temporal/runs.ts";
import { Suspects } from "../../activities/runtime/lost-attempts.ts";
import { CountedSaves } from "../../activities/runtime/counted-saves.ts";
import { createReaper, reapSandboxes } from "../../worker/reaper.ts";
import { runConfig } from "../support/agent-harness.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";
import { eventually } from "../support/eventually.ts";
import { isThere } from "../support/in-container.ts";
import { startRun } from "../support/start-run.ts";
import { playConnections } from "../support/play-loop.ts";
import { useDatabase } from "../support/test-database.ts";

const sandboxes = useTestSandboxes();
const database = useDatabase(4);

const config = () => {
  const usual = runConfig();
  return { ...usual, sandbox: { ...usual.sandbox, network: "none" as const } };
};

const taskQueue = `unserved-${randomBytes(4).toString("hex")}`;

/** A session with a run that no worker serves. */
async function running(id: string) {
  await createSession(database.store, { id, task: "Wait.", config: config() });
  return startRun((await playConnections()).client, id, taskQueue);
}

const newSpecs = (count: number) =>
  Array.from({ length: count }, () => sandboxSpec({ id: sandboxes.spec().sessionId, config: config() }));

/** Opens it as a session's own. */
async function openRecorded(spec: SandboxSpec, volume?: string): Promise<Sandbox> {
  const { db } = database.store;
  const sandbox = await sandboxes.host.open(spec);
  const { container, identity } = sandbox;
  await recordSandbox(db, spec.sessionId, {
    ...identity,
    volume: volume ?? identity.volume,
    taskQueue: undefined,
  });
  await setContainer(db, spec.sessionId, container);
  return sandbox;
}

/** Temporal's list of runs lags behind by moments; a session that is still in it waits for the next round. */
async function untilListedAsEnded(...ids: readonly string[]): Promise<void> {
  const { client } = await playConnections();
  await eventually("Temporal lists them as ended", async () => {
    const running = await listedAsRunning(client);
    return ids.every((id) => !running.has(id));
  });
}

const hasBox = ({ sessionId }: SandboxSpec) => isThere(sandboxes.docker.getContainer(sandboxName(sessionId)));

const optionsOf = async (host: SandboxHost) => ({
  host,
  store: database.store,
  countedSaves: new CountedSaves(database.store.db, new Suspects()),
  client: (await playConnections()).client,
  taskQueue,
  logger: pino({ level: "silent" }),
});

it(
  "sandboxes of runs that are over are removed; those of running or unknown ones stay",
  { tags: ["A21", "R12", "R58"], timeout: 240_000 },
  async () => {
    const { host, docker } = sandboxes;
    const { db } = database.store;
    const [over, created, alive, unknown, moved] = newSpecs(5);
    if (!over || !created || !alive || !unknown || !moved) throw new Error("No specs.");
    const runs = await Promise.all([over, created, alive, moved].map(({ sessionId }) => running(sessionId)));
    await openRecorded(over);
    await openRecorded(alive);
    await openRecorded(moved, "on another host");
    await host.open(unknown);
    await docker.createContainer(createOptions(created, new Date()));
    const foreign = await docker.createContainer({
      Image: over.image,
      Cmd: ["true"],
      Labels: { "another.session": over.sessionId },
    });
    await runs[0]?.terminate("from the Web UI");
    await runs[1]?.terminate("from the Web UI");
    await untilListedAsEnded(over.sessionId, created.sessionId);

    const options = await optionsOf(host);
    const removed = await reapSandboxes(options);
    const ours = new Set([over, created, alive, unknown, moved].map(({ sessionId }) => sessionId));
    expect(removed.filter((id) => ours.has(id)).toSorted()).toEqual(
      [over, created, moved].map(({ sessionId }) => sessionId).toSorted(),
    );
    expect(await Promise.all([over, created, alive, unknown, moved].map(hasBox))).toEqual([
      false,
      false,
      true,
      true,
      false,
    ]);
    expect((await foreign.inspect()).State.Status).toBe("created");
    await foreign.remove();
    expect(await findSession(db, over.sessionId)).toMatchObject({
      status: "cancelled",
      container: undefined,
    });
    expect(await findSession(db, alive.sessionId)).toMatchObject({ status: "active" });
    expect(await reapSandboxes(options)).not.toContain(alive.sessionId);
    await Promise.all([runs[2]?.terminate("the test is over"), runs[3]?.terminate("the test is over")]);
  },
);

it("the newest files are saved before a sandbox is removed; one failure affects no other", async () => {
  const specs = newSpecs(4);
  const [stuck, unreadable, unsaved, fine] = specs;
  if (!stuck || !unreadable || !unsaved || !fine) throw new Error("No specs.");
  const runs = await Promise.all(specs.map(({ sessionId }) => running(sessionId)));
  for (const spec of specs) await bash(await openRecorded(spec), "echo newest > n.txt");
  await Promise.all(runs.map((run) => run.terminate("from the Web UI")));
  await untilListedAsEnded(...specs.map(({ sessionId }) => sessionId));
  const { db } = database.store;
  await db
    .update(sessions)
    .set({ config: {} as never })
    .where(eq(sessions.id, unreadable.sessionId));
  const trouble = (spec: SandboxSpec, id: string) => {
    if (id === spec.sessionId) throw new Error("This one does not.");
  };
  const ours = new Set(specs.map(({ sessionId }) => sessionId));
  const sound: SandboxHost = {
    ...sandboxes.host,
    sessions: async () => (await sandboxes.host.sessions()).filter((id) => ours.has(id)).toSorted(),
  };
  const host: SandboxHost = {
    ...sound,
    open: async (spec) => (trouble(unsaved, spec.sessionId), sandboxes.host.open(spec)),
    remove: async (id) => (trouble(stuck, id), sandboxes.host.remove(id)),
  };
  expect(await reapSandboxes(await optionsOf(host))).toEqual([fine.sessionId]);
  expect(await Promise.all(specs.map(hasBox))).toEqual([true, true, true, false]);
  const saved = async ({ sessionId }: SandboxSpec) =>
    (await readWorkspace(db, sessionId))?.map(
      (file) => file.kind === "file" && String(Buffer.from(file.bytes)),
    );
  expect(await Promise.all([stuck, unsaved, fine].map(saved))).toEqual([
    ["newest\n"],
    undefined,
    ["newest\n"],
  ]);
  expect(await reapSandboxes(await optionsOf(sound))).toEqual([stuck.sessionId, unsaved.sessionId]);
  expect(await saved(unsaved)).toEqual(["newest\n"]);
}, 240_000);

it("the row of a terminated run is ended even while the engine is down", async () => {
  const { sessionId } = sandboxes.spec();
  const run = await running(sessionId);
  await run.terminate("from the Web UI");
  await untilListedAsEnded(sessionId);
  const host: SandboxHost = {
    ...sandboxes.host,
    sessions: () => Promise.reject(new Error("The engine is away.")),
  };
  const { native: connection } = await playConnections();
  const options = { ...(await optionsOf(host)), connection, namespace: "default", everyMs: 3_600_000 };
  const reaper = createReaper(options);
  await reaper.start();
  await reaper.stop();
  expect(await findSession(database.store.db, sessionId)).toMatchObject({ status: "cancelled" });
});
