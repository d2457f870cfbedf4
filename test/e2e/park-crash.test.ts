/** Sandboxes that are stopped and kept by a worker that dies meanwhile, or by one of another version. */
import type Dockerode from "dockerode";
import { expect, it, onTestFinished } from "vitest";
import { PROFILE_LABEL } from "../../activities/sandbox/docker/profile.ts";
import { useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { createRowHolds, type RowHoldSpec } from "../support/crash/row-holds.ts";
import { eventually } from "../support/eventually.ts";
import { ALL_THERE, installsAndLooks, KEEPING } from "../support/installing.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { perFile } from "../support/per-file.ts";
import { makeRemote, onRepository } from "../support/remotes.ts";
import { removeBox } from "../support/remove-box.ts";
import { startRunFor } from "../support/start-run.ts";
import { noticesOf, resultTexts } from "../support/stored.ts";

const agent = useAgent();

const holds = perFile(
  () => createRowHolds(agent.database),
  (made) => made.close(),
);

const isStopped = async (box: Dockerode.Container) => (await box.inspect()).State.Status === "exited";

it.each([
  ["its row says that it is kept, before it is stopped", "sandboxes", "kept"],
  ["it is stopped, before its event is stored", "events", "lost"],
  ["its event is stored, before anybody hears of it", "events", "kept"],
] as const)("a worker killed when %s: the next finds all there", async (_when, table, fate) => {
  const { database } = agent;
  const session = await startKillableSession(database, installsAndLooks(), { config: KEEPING });
  const { runId } = await session.handle.describe();
  const match = table === "sandboxes" ? { closed_run: runId } : PARKED;
  const hold = await holds.hold(session.id, { table, match } as RowHoldSpec);
  const worker = await session.startWorker();
  await eventually("its sandbox is being kept", () => hold.reached(), 60_000);
  expect(await isStopped(session.sandbox)).toBe(table === "events");
  await worker.kill();
  await hold.release(fate);
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
  expect(await isStopped(session.sandbox)).toBe(true);
  expect(await session.dataOf("sandbox:parked")).toHaveLength(1);
  const { client } = session.services;
  const next = await startRunFor(client, session.id, session.id, { id: "look", text: "Look." });
  expect(await next.result()).toMatchObject({ result: "Two." });
  expect((await resultTexts(database.store, session.id)).at(-1)).toMatch(ALL_THERE);
  expect(await session.dataOf("sandbox:created")).toHaveLength(1);
  await checkSession(session.services, session);
});

const PARKED = { type: "sandbox:parked" };

/** Puts a container of another version in its place, on the same volume. */
async function ofAnotherVersion(id: string): Promise<void> {
  const { docker } = agent;
  const box = docker.getContainer(`longhaul-${id}`);
  const { Config: config, HostConfig: limits } = await box.inspect();
  await box.remove();
  const labels = { ...config.Labels, [PROFILE_LABEL]: "of-another-version", "longhaul.protocol": "0" };
  const old = { ...config, Hostname: "", Labels: labels, HostConfig: limits, name: `longhaul-${id}` };
  const made = await docker.createContainer(old);
  await made.start();
  await made.stop({ t: 1 });
}

it("five that another version had stopped are made again with their files, and it is told", async () => {
  const place = makeRemote({ "b.txt": "b\n" }, { end: onTestFinished });
  const onBase = { ...KEEPING, ...onRepository(place.url, { push: "never" }) };
  const sessions = await Promise.all(
    [KEEPING, KEEPING, KEEPING, KEEPING, onBase].map(async (config) => {
      const session = await agent.start(installsAndLooks(), { config });
      onTestFinished(() => removeBox(agent.docker, session.id));
      expect(await session.result()).toMatchObject({ result: "One." });
      await ofAnotherVersion(session.id);
      return session;
    }),
  );
  await Promise.all(
    sessions.map(async (session) => {
      const next = await session.resume("Look.", "look");
      expect(await next.result()).toMatchObject({ result: "Two." });
      expect((await resultTexts(agent.database.store, session.id)).at(-1)).toMatch(/^kept\npad\ncat: .*tool/);
      expect(await noticesOf(agent.database.store, session.id)).toContainEqual(
        expect.stringMatching(
          /What was installed outside \/workspace is gone.*npm install left-pad.*\(step 1\)/,
        ),
      );
      await checkSession(agent, session);
    }),
  );
});
