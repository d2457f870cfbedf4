/** Bases that the operator has made for everyone: who uses them, what never gets into them, and when none is made. */
import { randomBytes } from "node:crypto";
import { sql } from "drizzle-orm";
import { afterAll, expect, inject, it } from "vitest";
import { createActivities } from "../../activities/index.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { readWarms, warmEvery, warmNow, warmOff } from "../../client/warm/warm-repositories.ts";
import { type RunningSession, runConfig, useAgent } from "../support/agent-harness.ts";
import { connectTo } from "../support/connections.ts";
import { changedConfig } from "../support/run-config.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { clientServices } from "../support/client-services.ts";
import type { AtEnd } from "../support/empty-folder.ts";
import { eventually } from "../support/eventually.ts";
import { makeRemote, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { createTestWorker } from "../support/test-worker.ts";

const agent = useAgent();
const ends: (() => Promise<void> | void)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
});
const end: AtEnd = (undo) => void ends.push(undo);

const FILES = { "package.json": "{}\n", ".gitignore": "node_modules/\n", fail: "no\n" };
const remote = () => makeRemote(FILES, { end });
const person = (): string => randomBytes(8).toString("hex");
const services = () => clientServices(agent);

/** What a package's script would leave for others; it fails where the repository says so. */
const INSTALL = `! grep -q yes fail && mkdir -p node_modules/dep ~/.local && cat package.json > node_modules/dep/of &&
  date +%s%N | tee ~/.local/ran > node_modules/dep/ran`;
const LOOK = "cat node_modules/dep/ran ~/.local/ran; cat node_modules/dep/of";

interface Settings {
  readonly by?: string;
  readonly ref?: string | undefined;
  readonly name?: string;
  readonly scope?: "person" | "team";
}

const settings = (url: string, { by, ref, name = "Ada", scope = "team" }: Settings = {}) => ({
  ...onRepository(url, { push: "never", ref, author: { name, email: "agent@example.org" } }),
  sandbox: {
    setup: { commands: [INSTALL], optional: true, keep: true, timeout: 60_000, scope },
    inherited: by === undefined ? {} : { setup: by },
  },
});

const warm = (url: string) =>
  warmNow(services(), url, changedConfig(runConfig(), settings(url, { name: "Operator" })));

const start = (
  url: string,
  { ref, by = person(), looks = [LOOK] }: { ref?: string; by?: string; looks?: string[] } = {},
) =>
  agent.start(
    looks.reduce((script, command) => script.calls("bash", { command }), scriptedModel()).says("Done."),
    { config: settings(url, { by, ref }) },
  );

async function done(session: RunningSession): Promise<string> {
  expect(await session.result()).toMatchObject({ status: "completed" });
  return (await resultTexts(agent.database.store, session.id)).map((text) => text.trim()).join("\n");
}

it("a base that warm made is for sessions of all persons, with what its set-up made", async () => {
  const place = remote();
  const { url } = place;
  const document = await warm(url);
  expect(document).toMatchObject({
    repository: url,
    everyMs: null,
    hosts: [{ host: "test", commit: place.at("main"), files: 3, failure: null, usedAt: null }],
  });
  const looks = [LOOK, "git config user.name; git status -s"];
  const sessions = await Promise.all([start(url, { looks }), start(url, { looks })]);
  const [one, two] = await Promise.all(sessions.map(done));
  expect(one).toMatch(/^(\d+)\n\1\n\{\}\nAda$/);
  expect(two).toBe(one);
  for (const session of sessions) {
    expect(await session.dataOf("base:making")).toEqual([]);
    expect((await session.dataOf("setup:ended"))[0]).toMatchObject({ kept: "taken" });
    await checkSession(agent, session);
  }
  const [listed] = (await readWarms(services())).filter(({ repository }) => repository === url);
  expect(listed?.hosts[0]?.usedAt).toMatch(/^\d{4}-/);
  // A session that does not ask for the team's makes its own.
  const own = await agent.start(scriptedModel().calls("bash", { command: LOOK }).says("Done."), {
    config: settings(url, { by: person(), scope: "person" }),
  });
  expect(await done(own)).not.toContain(one?.split("\n")[0]);
});

it("what a hostile branch installs stays in its own session", async () => {
  const place = remote();
  await warm(place.url);
  const before = await done(await start(place.url));
  place.commit("hostile", { "package.json": "EVIL\n" });
  const attack = await start(place.url, {
    ref: "hostile",
    looks: [LOOK, "echo EVIL > node_modules/dep/of; echo EVIL > ~/.local/ran; cat node_modules/dep/of"],
  });
  expect(await done(attack)).toContain("EVIL");
  expect(await attack.dataOf("base:making")).toEqual([]);
  expect((await attack.dataOf("setup:ended"))[0]).not.toHaveProperty("kept");
  expect(await done(await start(place.url))).toBe(before);
  // A look of warm while the branch is there takes the default branch alone.
  expect((await warm(place.url)).hosts[0]?.commit).toBe(place.at("main"));
});

it("a set-up that fails is in the list, and sessions use the base of before", async () => {
  const place = remote();
  const { hosts } = await warm(place.url);
  const older = place.at("main");
  place.commit("main", { fail: "yes\n" });
  const failed = await warm(place.url);
  expect(failed.hosts[0]).toMatchObject({
    commit: older,
    madeAt: hosts[0]?.madeAt,
    failure: expect.stringContaining("the project's set-up failed"),
  });
  const session = await start(place.url);
  const text = await done(session);
  expect(await session.dataOf("base:used")).toEqual([expect.objectContaining({ commit: older, behind: 1 })]);
  expect(text).toMatch(/^(\d+)\n\1\n\{\}$/);
  // Once it is mended, the next look makes one.
  place.commit("main", { fail: "no\n" });
  expect((await warm(place.url)).hosts[0]).toMatchObject({ commit: place.at("main"), failure: null });
});

it("a schedule makes it on each host, and nothing if no commit came since, until it is ended", async () => {
  const place = remote();
  const other = await secondHost();
  const order = {
    config: changedConfig(runConfig(), settings(place.url, { name: "Operator" })),
    everyMs: 30 * 60_000,
  };
  const look = async () => (await readWarms(services())).find(({ repository }) => repository === place.url);
  await warmEvery(services(), place.url, order);
  await agent.database.store.db.execute(
    sql`insert into sandbox_hosts (name, task_queue) values ('other', ${other.queue})`,
  );
  await eventually("the first base", async () => (await look())?.hosts.some(({ commit }) => commit !== null));
  await warmEvery(services(), place.url, order);
  const made = await eventually("a base on each host", async () => {
    const found = await look();
    return found?.hosts.filter(({ commit }) => commit !== null).length === 2 ? found : undefined;
  });
  expect(made.hosts.map(({ host }) => host)).toEqual(["other", "test"]);
  expect(made).toMatchObject({ everyMs: order.everyMs, next: expect.any(String) });
  const count = async () =>
    (await agent.database.store.db.execute(sql`select key from bases where url = ${place.url}`)).rows.length;
  const before = await count();
  const again = await warm(place.url);
  expect(again.hosts.map(({ madeAt, commit }) => [madeAt, commit])).toEqual(
    made.hosts.map(({ madeAt, commit }) => [madeAt, commit]),
  );
  expect(again.hosts[0]?.checkedAt).not.toBe(made.hosts[0]?.checkedAt);
  expect(await count()).toBe(before);
  await warmOff(services(), place.url);
  expect(await look()).toBeUndefined();
  await expect(warmOff(services(), place.url)).rejects.toThrow("is not kept warm");
});

/** Another host of the installation, as far as its engine is asked: what it makes has another one's labels. */
async function secondHost(): Promise<{ readonly queue: string }> {
  const queue = `${agent.taskQueue}-other`;
  const installation = () => Promise.resolve(queue);
  const sandboxHost = createDockerHost({ docker: agent.docker, name: "other", installation });
  const { announcements } = agent.database.store;
  const connections = await connectTo(inject("temporalAddress"));
  const worker = await createTestWorker({
    taskQueue: queue,
    connection: connections.native,
    activities: createActivities({ ...agent.deps, sandboxHost }),
    announceStop: announcements.announceStop,
  });
  const running = worker.run();
  end(async () => {
    worker.shutdown();
    await running;
    const { rows } = await agent.database.store.db.execute<{ key: string }>(sql`select key from bases`);
    for (const { key } of rows) await sandboxHost.bases?.forget(key);
    await Promise.all([sandboxHost.close(), connections.close()]);
  });
  return { queue };
}
