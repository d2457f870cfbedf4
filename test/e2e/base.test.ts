/** Sessions that stand on their repository's base: one for all, small saves, and what happens when it is gone. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it, test } from "vitest";
import { sql } from "drizzle-orm";
import { readInstallation } from "../../activities/store/installation.ts";
import { readFamily } from "../../activities/store/delete-session.ts";
import { purgeText } from "../../activities/store/purge.ts";
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import { pullWorkspace, sessionDiff } from "../../client/workspace/pull-workspace.ts";
import { type AgentHarness, type RunningSession, useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { sessionRow } from "../support/client-services.ts";
import { type AtEnd, emptyFolder } from "../support/empty-folder.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { makeLargeRepository } from "../support/large-repository.ts";
import { gitIn, makeRemote, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { withoutLayers } from "../support/without-layers.ts";

const agent = useAgent();
const ends: (() => Promise<void> | void)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
});
const end: AtEnd = (undo) => void ends.push(undo);

const FILES = {
  "README.md": "# Here\n",
  ".gitignore": "*.log\n",
  "src/a.txt": "one\ntwo\nthree\n",
  "src/b.txt": "b\n",
};
const remote = (files: Readonly<Record<string, string>> = FILES) => makeRemote(files, { end });
const config = (url: string) => onRepository(url, { push: "never" });

const commands = (...all: readonly string[]) =>
  all.reduce((script, command) => script.calls("bash", { command }), scriptedModel());

/** Removes the base of a session's saves from this host, as if the session went on on another one. */
async function forgetBase({ deps, database }: AgentHarness, id: string): Promise<string> {
  const { rows } = await database.store.db.execute<{ key: string }>(
    sql`select base_key as key from checkpoints where session_id = ${id} and base_key is not null limit 1`,
  );
  const key = rows[0]?.key ?? "";
  expect(await deps.sandboxHost.bases?.forget(key)).toBe(true);
  return key;
}

const resumed = async (session: RunningSession, message = "Go on.") =>
  (await session.resume(message, `m${message.length}`)).result();

describe.concurrent("sessions on a repository", () => {
  it("stand on one base, made once, and a save has only what each changed", async () => {
    const place = remote();
    const start = () =>
      agent.start(commands("printf ONE > src/a.txt; git status -s; rm src/b.txt").says("Done."), {
        config: config(place.url),
      });
    const sessions = await Promise.all([start(), start(), start()]);
    for (const session of sessions) expect(await session.result()).toMatchObject({ status: "completed" });
    const made = await Promise.all(sessions.map((session) => session.dataOf("base:made")));
    expect(made.flat()).toHaveLength(1);
    expect(made.flat()[0]).toMatchObject({ commit: place.at("main"), files: Object.keys(FILES).length });
    for (const session of sessions) {
      expect(await session.dataOf("base:used")).toEqual([
        expect.objectContaining({ commit: place.at("main"), behind: 0 }),
      ]);
      expect(await session.dataOf("sandbox:created")).toEqual([
        expect.objectContaining({ layers: "overlay" }),
      ]);
      expect((await resultTexts(agent.database.store, session.id))[0]).toContain(" M src/a.txt");
      const { rows } = await agent.database.store.db.execute<{ bytes: number }>(
        sql`select max(octet_length(manifest) + octet_length(pack) + coalesce(octet_length(before_pack), 0)) as bytes
          from checkpoints where session_id = ${session.id} and step > 0`,
      );
      expect(rows[0]?.bytes).toBeLessThan(8_192);
      const files = await readWorkspace(agent.database.store.db, session.id);
      expect(
        files
          ?.filter(({ path }) => !path.startsWith(".git/"))
          .map(({ path }) => path)
          .sort(),
      ).toEqual([".git", ".gitignore", "README.md", "src", "src/a.txt"].sort());
      await checkSession(agent, session);
    }
  });

  it("stand on the base of an older commit if little differs, and go on from there", async () => {
    const place = remote();
    await agent.run(commands("ls").says("Done."), { config: config(place.url) });
    const older = place.at("main");
    const commit = place.commit("main", { "src/a.txt": "NEW\n", "docs/c.txt": "c\n" });
    const look =
      "cat src/a.txt docs/c.txt; git status -s; git log --oneline | wc -l; git rev-parse HEAD origin/main; git fsck --connectivity-only";
    const session = await agent.start(
      commands(look).says("Done.").calls("bash", { command: look }).says("Still there."),
      { config: config(place.url) },
    );
    expect(await session.result()).toMatchObject({ status: "completed" });
    expect(await session.dataOf("base:making")).toEqual([]);
    expect(await session.dataOf("base:used")).toEqual([
      expect.objectContaining({ commit: older, behind: 1 }),
    ]);
    await forgetBase(agent, session.id);
    expect(await resumed(session)).toMatchObject({ status: "completed" });
    const results = await resultTexts(agent.database.store, session.id);
    expect(results).toEqual([`NEW\nc\n2\n${commit}\n${commit}`, `NEW\nc\n2\n${commit}\n${commit}`]);
    await checkSession(agent, session);
  });

  it("stand on an older base though a branch of then is the folder of one of now", async () => {
    const place = remote();
    place.commit("feature", { "src/a.txt": "feature\n" });
    const at = (ref: string) => ({ config: onRepository(place.url, { push: "never", ref }) });
    await agent.run(commands("ls").says("Done."), at("feature"));
    const older = place.at("feature") ?? "";
    gitIn(place.folder, "update-ref", "-d", "refs/heads/feature");
    gitIn(place.folder, "update-ref", "refs/heads/feature/x", older);
    const commit = place.commit("feature/x", { "src/a.txt": "x\n" });
    const look =
      "cat src/a.txt; git status -s; git rev-parse origin/feature/x; git branch -r | grep -c feature$ || true";
    const session = await agent.run(commands(look).says("Done."), at("feature/x"));
    expect(await session.dataOf("base:used")).toEqual([
      expect.objectContaining({ commit: older, behind: 1 }),
    ]);
    expect((await resultTexts(agent.database.store, session.id))[0]).toBe(`x\n${commit}\n0`);
    await checkSession(agent, session);
  });

  it("are named by purge for a text that only the repository has, or what a file was before", async () => {
    const place = remote({ ...FILES, "key.txt": "hunter2-of-the-repository\n" });
    const session = await agent.run(commands("echo gone > key.txt").says("Done."), {
      config: config(place.url),
    });
    const { db } = agent.database.store;
    const purged = await purgeText(db, await readFamily(db, session.id), "hunter2-of-the-repository");
    expect(purged?.saves).toEqual([{ id: session.id, steps: [0, 1] }]);
    expect((await purgeText(db, await readFamily(db, session.id), "nowhere-at-all"))?.saves).toEqual([]);
  });

  it("go on where the base is gone: it is made again from the store, without the remote", async () => {
    const place = remote({ ...FILES, "node_modules/dep/a.js": "a", "node_modules/dep/b.js": "b" });
    const session = await agent.start(
      commands(
        "echo kept > new; git mv src lib; git add -A; git commit -qm Moved; cd node_modules/dep; rm a.js; echo B > b.js; echo c > c.js",
      )
        .says("Done.")
        .calls("bash", {
          command:
            "cat new lib/a.txt; git status -s; git log --oneline | wc -l; git fsck --connectivity-only",
        })
        .says("Still there."),
      { config: config(place.url) },
    );
    await session.result();
    await forgetBase(agent, session.id);
    rmSync(place.folder, { recursive: true, force: true });
    expect(await resumed(session)).toMatchObject({ status: "completed" });
    expect((await resultTexts(agent.database.store, session.id))[1]).toBe(
      "kept\none\ntwo\nthree\n D node_modules/dep/a.js\n M node_modules/dep/b.js\n2",
    );
    await checkSession(agent, session);
  });
});

describe("a repository that is too large for a save", () => {
  const large = () => remote({ ...FILES, "assets/large.bin": "x".repeat(270 * 2 ** 20) });
  const CHANGES =
    "sed -i s/two/TWO/ src/a.txt; rm src/b.txt; echo new > c.txt; echo no > c.log; git status -s";

  it(
    "is all there, its changes can be read, and its base is made again from the remote",
    { timeout: 600_000 },
    async () => {
      const place = large();
      const session = await agent.start(
        commands(CHANGES, "wc -c < assets/large.bin")
          .says("Done.")
          .calls("bash", { command: "cat src/a.txt; ls; wc -c < assets/large.bin; git status -s" })
          .says("Still there.")
          .calls("bash", { command: "ls" })
          .says("Never."),
        { config: config(place.url) },
      );
      expect(await session.result()).toMatchObject({ status: "completed" });
      expect((await resultTexts(agent.database.store, session.id))[1]).toContain(String(270 * 2 ** 20));
      const { patch } = await sessionDiff(agent.database.store, await sessionRow(agent, session.id));
      expect(patch).toContain("-two\n+TWO\n");
      expect(patch).toContain("deleted file mode 100644\n--- a/src/b.txt");
      expect(patch).toContain("+new");
      expect(patch).not.toContain("c.log");
      expect(patch).not.toContain("large.bin");
      const folder = emptyFolder(end);
      const pulled = await pullWorkspace(agent.database.store, session.id, folder);
      expect(pulled?.lacking[0]).toContain(
        `all else is commit ${place.at("main")?.slice(0, 12)} of ${place.url}`,
      );
      expect(readFileSync(join(folder, "src/a.txt"), "utf8")).toBe("one\nTWO\nthree\n");
      expect(existsSync(join(folder, ".git"))).toBe(false);
      await forgetBase(agent, session.id);
      expect(await resumed(session)).toMatchObject({ status: "completed" });
      expect((await resultTexts(agent.database.store, session.id))[2]).toMatch(/^one\nTWO\nthree\n/);
      await forgetBase(agent, session.id);
      const commit = place.at("main") ?? "";
      gitIn(place.folder, "update-ref", "-d", "refs/heads/main");
      gitIn(place.folder, "reflog", "expire", "--expire=now", "--all");
      gitIn(place.folder, "gc", "-q", "--prune=now");
      rmSync(`${agent.deps.git?.folder}/mirrors`, { recursive: true, force: true });
      await expect(resumed(session, "And again.")).rejects.toThrow("Workflow execution failed");
      expect((await sessionRow(agent, session.id)).error).toMatchObject({
        message: expect.stringContaining(
          `Commit ${commit} is at no remote and in no save any more: the session's files cannot be restored.`,
        ),
      });
    },
  );
});

test("an engine without layers gets a copy, and says so", async () => {
  withoutLayers(agent.deps, "invalid argument");
  const session = await agent.run(commands("echo kept > new; git status -s").says("Done."), {
    config: config(remote().url),
  });
  expect(await session.dataOf("base:none")).toEqual([expect.objectContaining({ why: "invalid argument" })]);
  expect((await session.dataOf("sandbox:created")).at(-1)).toMatchObject({ layers: "copy" });
  expect((await resultTexts(agent.database.store, session.id))[0]).toContain("?? new");
  await checkSession(agent, session);
});

test("a session waits for no base that it does not need, and takes one that is there", async () => {
  const { url } = remote();
  const run = async (layers: "auto" | "made" | "copy") => {
    const session = await agent.run(
      commands("echo kept > new; git status -s; git log --oneline").says("Done."),
      {
        config: { ...config(url), sandbox: { layers } },
      },
    );
    expect((await resultTexts(agent.database.store, session.id))[0]).toMatch(/^\?\? new\n[0-9a-f]{7}/);
    const created = (await session.dataOf("sandbox:created")).at(-1);
    return { session, layers: created?.layers, none: await session.dataOf("base:none") };
  };
  const first = await run("made");
  expect(await first.session.dataOf("base:making")).toEqual([]);
  expect(first).toMatchObject({
    layers: "copy",
    none: [{ chosen: true, why: expect.stringContaining("none was to be made") }],
  });
  expect(await run("auto")).toMatchObject({ layers: "overlay", none: [] });
  expect(await run("made")).toMatchObject({ layers: "overlay", none: [] });
  const copy = await run("copy");
  expect(copy).toMatchObject({ layers: "copy", none: [{ chosen: true, why: "sandbox.layers is copy" }] });
  await Promise.all([first, copy].map(({ session }) => checkSession(agent, session)));
});

test("a worker killed while it makes a base leaves no half of one: the next makes it whole", async () => {
  const remoteFolder = emptyFolder(end);
  await makeLargeRepository(remoteFolder, { files: 4_000, meanBytes: 2_000 });
  const session = await startKillableSession(
    agent.database,
    commands("git ls-files | wc -l; git status -s; git fsck --connectivity-only").says("Done."),
    { environment: { LONGHAUL_GIT_FOLDER: emptyFolder(end) }, config: config(`file://${remoteFolder}`) },
  );
  const worker = await session.startWorker();
  await session.until("base:making");
  const installation = await readInstallation(agent.database.store.db);
  const filters = { label: ["longhaul.makes", `longhaul.installation=${installation}`] };
  await eventually("the sandbox in which it is made", async () =>
    (await agent.docker.listContainers({ filters })).length > 0 ? true : undefined,
  );
  await worker.kill();
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
  expect(await session.dataOf("base:made")).toEqual([
    expect.objectContaining({ commit: gitIn(remoteFolder, "rev-parse", "main") }),
  ]);
  expect((await resultTexts(agent.database.store, session.id))[0]).toBe("4000");
  expect(await agent.docker.listContainers({ all: true, filters })).toEqual([]);
  await checkSession(session.services, session, { kills: 1 });
});
