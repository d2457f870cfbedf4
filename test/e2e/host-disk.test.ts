/** A host's part of the disk: what goes when bases and stopped sandboxes do not fit into it, and what never does. */
import { rmSync } from "node:fs";
import { sql } from "drizzle-orm";
import { expect, it, onTestFinished } from "vitest";
import type { DiskLimit } from "../../activities/config/setting-values.ts";
import { readHostDisks } from "../../activities/store/host-disk.ts";
import { noteHost } from "../../activities/store/warms.ts";
import { keepWithinDisk } from "../../activities/workspace/host-disk.ts";
import { readStatus } from "../../client/sessions/session-status.ts";
import { statusText } from "../../client/commands/status.ts";
import { hostDiskFinding } from "../../client/setup/storage-check.ts";
import { eventually, type RunningSession, useAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { removeBox } from "../support/remove-box.ts";
import { gitIn, makeRemote, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { noticesOf, resultTexts } from "../support/stored.ts";

const agent = useAgent();
const MIB = 2 ** 20;
const DAY_MS = 86_400_000;
const plain: Parameters<typeof statusText>[2] = (_, text) => text;

/** Until the test's end, this host keeps no more. */
function limitTo(hostDisk: DiskLimit): void {
  const deps: { -readonly [Key in keyof typeof agent.deps]: (typeof agent.deps)[Key] } = agent.deps;
  deps.hostDisk = hostDisk;
  onTestFinished(() => void (deps.hostDisk = undefined));
}

const keeping = (keep: number) => ({ sandbox: { network: "none" as const, park: { keep } } });
const stateOf = (id: string) =>
  agent.docker
    .getContainer(`longhaul-${id}`)
    .inspect()
    .then(
      ({ State: state }) => state.Status,
      () => "gone",
    );

const INSTALL = `mkdir -p node_modules/dep; head -c ${20 * MIB} /dev/urandom > node_modules/dep/large; echo kept > a.txt; true npm install dep`;

/** A session that has ended, with a stopped sandbox of more than 20 MiB. */
async function parked(command = INSTALL): Promise<RunningSession> {
  const script = scriptedModel()
    .calls("bash", { command })
    .says("One.")
    .calls("bash", { command: "cat a.txt; ls node_modules" })
    .says("Two.");
  const session = await agent.start(script, { config: keeping(3 * DAY_MS) });
  expect(await session.result()).toMatchObject({ result: "One." });
  onTestFinished(() => removeBox(agent.docker, session.id));
  return session;
}

async function statusOf(session: RunningSession): Promise<string> {
  const document = await readStatus(clientServices(agent), await sessionRow(agent, session.id));
  return statusText(document, undefined, plain, new Date());
}

/** As if nothing had been used for an hour. */
const anHourLater = () =>
  agent.database.store.db.execute(
    sql`with saves as (update checkpoints set created_at = created_at - interval '1 hour' returning id)
      update bases set created_at = created_at - interval '1 hour' from (select count(*) from saves) as done`,
  );

it("the oldest stopped sandbox goes, never one that runs or has unsaved files", async () => {
  const unsaved = await parked("truncate -s 70M large; echo kept > a.txt");
  const working = await agent.start(scriptedModel().calls("bash", { command: "sleep 600" }).says("Never."), {
    config: keeping(3 * DAY_MS),
  });
  await eventually("it works", async () => (await stateOf(working.id)) === "running");
  limitTo({ bytes: 50 * MIB });
  const [oldest, second] = [await parked(), await parked()];
  expect(await stateOf(oldest.id)).toBe("exited");
  expect(await statusOf(oldest)).toMatch(/parked +on test, 2\d MB, until \d{4}-\d\d-\d\d \d\d:\d\d UTC/);
  const third = await parked();
  expect(await Promise.all([oldest, second, third, unsaved].map(({ id }) => stateOf(id)))).toEqual([
    "gone",
    "exited",
    "exited",
    "exited",
  ]);
  expect(await stateOf(working.id)).toBe("running");
  const [evicted] = await oldest.dataOf("host:evicted");
  expect(evicted).toMatchObject({ host: "test", took: "sandbox", name: `longhaul-${oldest.id}` });
  expect(evicted?.limitBytes).toBe(50 * MIB);
  expect(evicted?.bytes).toBeGreaterThan(20 * MIB);
  expect(evicted?.usedBytes).toBeGreaterThan(60 * MIB);
  expect(await statusOf(oldest)).toContain(
    "no more: its stopped sandbox was removed to make room on its host",
  );
  await noteHost(agent.database.store.db, { host: "test", taskQueue: undefined });
  limitTo({ bytes: MIB });
  expect(await keepWithinDisk(agent.deps)).toMatchObject({ parked: 1, unsaved: 1 });
  expect(await stateOf(unsaved.id)).toBe("exited");
  expect(hostDiskFinding(await readHostDisks(agent.database.store.db))).toMatchObject({
    ok: true,
    found: expect.stringMatching(/^test: \d+(\.\d)? KB of 1 MB \(0 bases, 1 stopped sandbox\)$/),
  });
  limitTo({ bytes: 0 });
  await keepWithinDisk(agent.deps);
  expect(hostDiskFinding(await readHostDisks(agent.database.store.db))).toMatchObject({
    warning: true,
    fix: expect.stringContaining("1 stopped sandbox stays for files that no save has"),
  });
  // What went is told, and its files are those of the save.
  expect(await (await oldest.resume("Look.", "look")).result()).toMatchObject({ result: "Two." });
  expect((await resultTexts(agent.database.store, oldest.id)).at(-1)).toMatch(/^kept\nls: /);
  expect(await noticesOf(agent.database.store, oldest.id)).toContainEqual(
    expect.stringMatching(/was removed to make room on its host.*node_modules.*npm install dep.*\(step 1\)/),
  );
  await checkSession(agent, oldest);
  await working.handle.cancel();
});

it("a base goes when nothing stands on it, and is made again when it is needed", async () => {
  const place = makeRemote({ "a.txt": "a\n" }, { end: onTestFinished });
  const script = scriptedModel()
    .calls("bash", { command: "echo b > b.txt" })
    .says("One.")
    .calls("bash", { command: "cat a.txt b.txt" })
    .says("Two.");
  const config = { ...keeping(3 * DAY_MS), ...onRepository(place.url, { push: "never" }) };
  const session = await agent.start(script, { config });
  await session.result();
  onTestFinished(() => removeBox(agent.docker, session.id));
  const bases = () => agent.deps.sandboxHost.bases?.list();
  const [base] = (await bases()) ?? [];
  expect(base).toMatchObject({ sessions: [session.id] });
  expect(base?.bytes).toBeGreaterThan(4_096);
  limitTo({ bytes: 0 });
  // What stands on it goes first; then it was used a moment ago.
  expect(await keepWithinDisk(agent.deps)).toMatchObject({ parked: 0, bases: 1, unsaved: 0 });
  await anHourLater();
  expect(await keepWithinDisk(agent.deps)).toMatchObject({ usedBytes: 0, bases: 0 });
  expect(await bases()).toEqual([]);
  limitTo({ share: 0.2 });
  expect(await (await session.resume("Look.", "look")).result()).toMatchObject({ result: "Two." });
  expect((await resultTexts(agent.database.store, session.id)).at(-1)).toBe("a\nb");
  const use = await keepWithinDisk(agent.deps);
  expect(use).toMatchObject({ bases: 1, parked: 1 });
  expect(use?.limitBytes).toBeGreaterThan(100 * MIB);
  await checkSession(agent, session);
});

it("a base stays while its files are neither in the store nor at a remote", async () => {
  const place = makeRemote({ "a.txt": "a\n" }, { end: onTestFinished });
  const config = onRepository(place.url, { push: "never", ref: "gone" });
  place.commit("gone", { "a.txt": "b\n" });
  const session = await agent.run(scriptedModel().calls("bash", { command: "ls" }).says("Done."), { config });
  const { db } = agent.database.store;
  const key = sql`(select base_key from checkpoints where session_id = ${session.id} and base_key is not null limit 1)`;
  await db.execute(sql`update bases set is_whole = false where key = ${key}`);
  await anHourLater();
  gitIn(place.folder, "update-ref", "-d", "refs/heads/gone");
  gitIn(place.folder, "gc", "-q", "--prune=now");
  rmSync(`${agent.deps.git?.folder}/mirrors`, { recursive: true, force: true });
  limitTo({ bytes: 0 });
  expect(await keepWithinDisk(agent.deps)).toMatchObject({ bases: 1 });
  await db.execute(sql`update bases set is_whole = true where key = ${key}`);
  expect(await keepWithinDisk(agent.deps)).toMatchObject({ bases: 0 });
});
