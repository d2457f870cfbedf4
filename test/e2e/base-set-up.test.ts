/** Bases with what a project's set-up made: who gets them, when it runs again, and what happens when it fails. */
import { randomBytes } from "node:crypto";
import { sql } from "drizzle-orm";
import { runOnce } from "../../activities/sandbox/docker/run-program.ts";
import { afterAll, describe, expect, it } from "vitest";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { delegating } from "../support/delegating.ts";
import type { AtEnd } from "../support/empty-folder.ts";
import { makeRemote, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();
const ends: (() => Promise<void> | void)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
});
const end: AtEnd = (undo) => void ends.push(undo);

const FILES = { "package.json": "{}\n", "src/a.txt": "a\n", ".gitignore": "node_modules/\n" };
const remote = (files: Readonly<Record<string, string>> = FILES) => makeRemote(files, { end });
const person = (): string => randomBytes(8).toString("hex");

/** Leaves a mark of each run where the session, and where its home folder, would have it. */
const INSTALL =
  "mkdir -p node_modules/dep ~/.local/bin; cat package.json > node_modules/dep/of; date +%s%N > node_modules/dep/ran; cp node_modules/dep/ran ~/.local/ran";
const LOOK = "cat node_modules/dep/ran ~/.local/ran; cat node_modules/dep/of; git status -s";

interface Start {
  readonly url: string;
  readonly commands?: readonly string[];
  readonly by?: string;
  readonly ref?: string;
  readonly sandbox?: object;
  readonly looks?: readonly string[];
}

const start = ({ url, commands = [INSTALL], by = person(), ref, sandbox, looks = [LOOK] }: Start) =>
  agent.start(
    looks.reduce((script, command) => script.calls("bash", { command }), scriptedModel()).says("Done."),
    {
      config: {
        ...onRepository(url, { push: "never", ref }),
        sandbox: {
          setup: { commands: [...commands], optional: false, keep: true, timeout: 60_000 },
          inherited: { setup: by },
          ...sandbox,
        },
      },
    },
  );

async function done(session: RunningSession): Promise<readonly string[]> {
  expect(await session.result()).toMatchObject({ status: "completed" });
  return (await resultTexts(agent.database.store, session.id)).map((text) => text.trim());
}

const baseOf = async (session: RunningSession): Promise<string> =>
  (await session.dataOf("base:used"))[0]?.base ?? "";

/** A hash of all that a base's volume has. */
async function hashOf(session: RunningSession): Promise<string> {
  const { rows } = await agent.database.store.db.execute<{ key: string }>(
    sql`select base_key as key from checkpoints where session_id = ${session.id} and base_key is not null limit 1`,
  );
  const filters = { label: [`longhaul.makes=${rows[0]?.key}`] };
  const { Volumes: volumes } = await agent.docker.listVolumes({ filters });
  expect(volumes).toHaveLength(1);
  const command = "cd /base; find . -printf '%p %m %s %T@ %l\\n' | sort | sha256sum";
  const { image } = (await session.dataOf("sandbox:created"))[0] ?? {};
  const seen = await runOnce(agent.docker, {
    Image: image,
    Entrypoint: ["bash", "-c", command],
    HostConfig: { NetworkMode: "none", Binds: [`${volumes[0]?.Name}:/base:ro`] },
  });
  expect(seen).toMatch(/^[0-9a-f]{64} /);
  return seen;
}

describe.concurrent("a base with what the project's set-up made", () => {
  it("is there for all sessions of a person, workspace and home, and the set-up ran once", async () => {
    const { url } = remote();
    const by = person();
    const sessions = await Promise.all([start({ url, by }), start({ url, by })]);
    const [one = [], two = []] = await Promise.all(sessions.map(done));
    const [ran, home] = one[0]?.split("\n") ?? [];
    expect(ran).toMatch(/^\d+$/);
    expect(home).toBe(ran);
    expect(two).toEqual(one);
    for (const session of sessions) {
      expect((await session.dataOf("setup:ended"))[0]).toMatchObject({ status: "done", kept: "taken" });
      await checkSession(agent, session);
    }
    const made = (await Promise.all(sessions.map((session) => session.dataOf("base:made")))).flat();
    expect(made).toEqual([expect.objectContaining({ setUpMs: expect.any(Number) })]);
  });

  it("is not another person's, nor of other commands or other settings", async () => {
    const { url } = remote();
    const by = person();
    const all = await Promise.all([
      start({ url, by }),
      start({ url }),
      start({ url, by, commands: [INSTALL, "true"] }),
      start({ url, by, sandbox: { env: { MODE: "other" } } }),
    ]);
    const texts = await Promise.all(all.map(done));
    expect(new Set(texts.map(([text]) => text)).size).toBe(all.length);
    expect(new Set(await Promise.all(all.map(baseOf))).size).toBe(all.length);
  });

  it("has the files of the checkout that the set-up changed, as git tells", async () => {
    const { url } = remote();
    const by = person();
    const commands = ["echo changed >> src/a.txt; echo new > src/new.txt; rm package.json"];
    const looks = ["cat src/a.txt src/new.txt; git status -s"];
    const [first] = await done(await start({ url, by, commands, looks }));
    expect(first?.split("\n").map((line) => line.trim())).toEqual([
      "a",
      "changed",
      "new",
      "D package.json",
      "M src/a.txt",
      "?? src/new.txt",
    ]);
    const second = await start({ url, by, commands, looks });
    expect((await done(second))[0]).toBe(first);
    expect((await second.dataOf("setup:ended"))[0]).toMatchObject({ kept: "taken" });
  });

  it("stays as it is when a branch has other dependency files: that session sets up for itself", async () => {
    const place = remote();
    const by = person();
    const first = await start({ url: place.url, by });
    await done(first);
    const before = await hashOf(first);
    place.commit("other", { "package.json": '{"other":1}\n' });
    const other = await start({ url: place.url, by, ref: "other" });
    const [text = ""] = await done(other);
    expect(text).toContain('{"other":1}');
    expect(await other.dataOf("base:used")).toEqual([expect.objectContaining({ behind: 1 })]);
    expect((await other.dataOf("setup:ended"))[0]).not.toHaveProperty("kept");
    expect(await hashOf(first)).toBe(before);
    // And one with the same files takes it as it is.
    place.commit("same", { "src/a.txt": "b\n" });
    const same = await start({ url: place.url, by, ref: "same" });
    await done(same);
    expect((await same.dataOf("setup:ended"))[0]).toMatchObject({ kept: "taken" });
    for (const session of [other, same]) await checkSession(agent, session);
  });

  it("is made anew for the default branch when that has other dependency files", async () => {
    const place = remote();
    const by = person();
    await done(await start({ url: place.url, by }));
    place.commit("main", { "package.json": '{"newer":1}\n' });
    const session = await start({ url: place.url, by });
    expect((await done(session))[0]).toContain('{"newer":1}');
    expect(await session.dataOf("base:made")).toHaveLength(1);
  });

  it("whose set-up made more than packages is used only as it is: with other files it runs again", async () => {
    const place = remote();
    const by = person();
    const commands = [INSTALL, "cp src/a.txt built"];
    const looks = ["cat built"];
    await done(await start({ url: place.url, by, commands, looks }));
    place.commit("other", { "src/a.txt": "other\n" });
    expect(await done(await start({ url: place.url, by, commands, looks, ref: "other" }))).toEqual(["other"]);
  });

  it("gives way where a newer commit changes what the set-up changed, and the set-up runs again", async () => {
    const place = remote();
    const by = person();
    const commands = ["echo set up >> src/a.txt"];
    const looks = ["cat src/a.txt; git status -s"];
    await done(await start({ url: place.url, by, commands, looks }));
    place.commit("other", { "src/a.txt": "theirs\n" });
    const session = await start({ url: place.url, by, commands, looks, ref: "other" });
    expect(await done(session)).toEqual(["theirs\nset up\n M src/a.txt"]);
  });

  it.each([
    { what: "fails", command: "touch half; echo broken >&2; exit 3", how: "exit code 3" },
    {
      what: "fills the disk",
      command: "mkdir -p node_modules; head -c 700M /dev/urandom > node_modules/large; sleep 30",
      how: "disk is full",
    },
  ])(
    "is not kept if the set-up $what: the session begins without it, and tells why",
    async ({ command, how }) => {
      const { url } = remote();
      const session = await start({
        url,
        commands: [INSTALL, `if [ -z "$(git symbolic-ref -q HEAD)" ]; then ${command}; fi`],
        sandbox: { disk: "512m" },
        looks: [`${LOOK}; ls`],
      });
      const [text = ""] = await done(session);
      expect(text).not.toContain("half");
      const [used] = await session.dataOf("base:used");
      expect(used?.notSetUp).toContain(how);
      expect((await session.dataOf("setup:ended"))[0]).toMatchObject({ status: "done" });
      const { Volumes: volumes } = await agent.docker.listVolumes({ filters: { label: ["longhaul.makes"] } });
      const { rows } = await agent.database.store.db.execute<{ key: string }>(sql`select key from bases`);
      const known = new Set(rows.map(({ key }) => key));
      const installation = volumes.find(({ Labels: labels }) => labels["longhaul.makes"] === used?.base);
      const ours = volumes.filter(
        ({ Labels: labels }) =>
          labels["longhaul.installation"] === installation?.Labels["longhaul.installation"],
      );
      // Others of this file are made at the same time: each has a container.
      const containers = await agent.docker.listContainers({
        all: true,
        filters: { label: ["longhaul.makes"] },
      });
      const inMaking = new Set(containers.map(({ Labels: labels }) => labels["longhaul.makes"]));
      const left = ours.map(({ Labels: labels }) => labels["longhaul.makes"] ?? "");
      expect(left.filter((key) => !known.has(key) && !inMaking.has(key))).toEqual([]);
      await checkSession(agent, session);
    },
  );

  it("is a delegate's too, with what was installed, and what that removes stays its parent's", async () => {
    const { url } = remote();
    const session = await agent.start(
      scriptedModel()
        .calls("bash", { command: LOOK })
        .calls("delegate", { task: "Look.", access: "write" })
        // The delegate's.
        .calls("bash", { command: `${LOOK}; rm -rf node_modules ~/.local/ran; echo x > made` })
        .says("Looked.")
        .calls("bash", { command: LOOK })
        .says("Done."),
      {
        config: {
          ...onRepository(url, { push: "never" }),
          ...delegating({}),
          sandbox: {
            setup: { commands: [INSTALL], optional: false, keep: true, timeout: 60_000 },
            inherited: { setup: person() },
          },
        },
      },
    );
    const [before = "", report, after] = await done(session);
    expect(report).toContain("Looked.");
    expect(after).toBe(`${before}\n?? made`);
    const [theirs] = await resultTexts(agent.database.store, `${session.id}.s2c0`);
    expect(theirs?.trim()).toBe(before);
  });

  it("is made again on another host with its set-up, on the files that the store has", async () => {
    const { url } = remote();
    const session = await agent.start(
      scriptedModel()
        .calls("bash", { command: "echo mine > mine; cat node_modules/dep/ran" })
        .says("Done.")
        .calls("bash", { command: "cat mine node_modules/dep/ran ~/.local/ran node_modules/dep/of" })
        .says("Still there."),
      {
        config: {
          ...onRepository(url, { push: "never" }),
          sandbox: {
            setup: { commands: [INSTALL], optional: false, keep: true, timeout: 60_000 },
            inherited: { setup: person() },
          },
        },
      },
    );
    const [first] = await done(session);
    await agent.deps.sandboxHost.remove(session.id);
    expect(await agent.deps.sandboxHost.bases?.forget(await baseOf(session))).toBe(true);
    expect(await (await session.resume("Go on.", "again")).result()).toMatchObject({ status: "completed" });
    const [, second = ""] = (await resultTexts(agent.database.store, session.id)).map((text) => text.trim());
    const [mine, ran, home, of] = second.split("\n");
    expect([mine, of]).toEqual(["mine", "{}"]);
    expect(ran).toBe(home);
    expect(ran).not.toBe(first);
    expect((await session.dataOf("setup:ended")).at(-1)).toMatchObject({ kept: "taken" });
    await checkSession(agent, session);
  });
});
