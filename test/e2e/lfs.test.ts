import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import type { SessionGit } from "../../activities/config/git-settings.ts";
import { CANARY, useAgent, type RunningSession } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { createLfsServer, pointerOf } from "../support/lfs-server.ts";
import { gitIn, makeRemote, serveGit, onRepository } from "../support/remotes.ts";
import { scriptedModel, type ModelScript } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();

const CONTENT = "what is large\n".repeat(1_000);

/** A repository with one file in LFS, and the servers of both. */
async function place() {
  const pointer = pointerOf(CONTENT);
  const remote = makeRemote({
    ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    "here.bin": pointer.text,
    "README.md": "# Here\n",
  });
  const store = createLfsServer(CANARY);
  store.objects.set(pointer.oid, Buffer.from(CONTENT));
  const server = await serveGit(remote, CANARY, store.handle);
  return { remote, store, server, url: `${server.origin}/acme/app.git` };
}

const start = (url: string, script: ModelScript, git: Partial<SessionGit> = {}) =>
  agent.start(script, { config: onRepository(url, { lfs: true, ...git }) });

const refusals = async (session: RunningSession) =>
  (await session.dataOf("git:refused")).map(({ reason }) => reason);

it("files in Git LFS are in the sandbox whole, and new ones reach the store before the branch", async () => {
  const { remote, store, url } = await place();
  const script = scriptedModel()
    .calls("bash", { command: "wc -c < here.bin; git status --porcelain; git lfs ls-files | cut -c1-12" })
    .calls("bash", { command: "printf 'first\\n' > new.bin; git add -A; git commit -qm First" })
    .calls("bash", { command: "head -c 12000000 /dev/zero > new.bin; rm here.bin; git remote -v; env" });
  const session = await start(url, script.says("Done."));
  const closed = await session.result();
  expect(await refusals(session)).toEqual([]);
  expect(closed).toMatchObject({ status: "completed", delivery: "done" });
  const [first = ""] = await resultTexts(agent.database.store, session.id);
  expect(first.split("\n").slice(0, 2)).toEqual([
    String(CONTENT.length),
    pointerOf(CONTENT).oid.slice(0, 10) + " *",
  ]);
  const branch = `longhaul/${session.id}`;
  const zeros = pointerOf(Buffer.alloc(12_000_000));
  expect(gitIn(remote.folder, "show", `${branch}:new.bin`)).toBe(zeros.text.trim());
  // Also of the commit between, which nothing points to any more at the end.
  for (const oid of [zeros.oid, pointerOf("first\n").oid])
    expect(
      createHash("sha256")
        .update(store.objects.get(oid) ?? "")
        .digest("hex"),
    ).toBe(oid);
  expect(store.seen.filter((line) => line.startsWith("GET"))).toHaveLength(1);
  const lastStored = store.seen.findLastIndex((line) => line.startsWith("POST"));
  expect(store.seen.indexOf("push")).toBeGreaterThan(lastStored);
  expect([...store.passwords]).toEqual([CANARY]);
  const shown = JSON.stringify([await session.events(), await resultTexts(agent.database.store, session.id)]);
  expect(shown).not.toContain(CANARY);
  await checkSession(agent, session);
});

it("files in Git LFS are whole in a fresh sandbox too, where the work is verified", async () => {
  const { url } = await place();
  const commands = [
    `test $(wc -c < here.bin) = ${CONTENT.length}`,
    "test $(cat new.bin) = new",
    'test -z "$(git status --porcelain)"',
  ];
  const verify = verifySchema.parse({ commands, rounds: 0, where: "fresh" });
  const script = scriptedModel().calls("bash", { command: "echo new > new.bin" }).says("Done.");
  const session = await agent.start(script, { config: { ...onRepository(url, { lfs: true }), verify } });
  const closed = await session.result();
  expect((await session.dataOf("verify:ended")).map(({ how }) => how)).toEqual(Array(3).fill("exit code 0"));
  expect(closed).toMatchObject({ verified: "passed", delivery: "done" });
}, 120_000);

it("a pointer whose content is nowhere is not pushed", async () => {
  const { remote, url } = await place();
  const { text } = pointerOf("nowhere");
  const command = `cat > .gitattributes < /dev/null; printf '${text.replaceAll("\n", "\\n")}' > gone.bin; git add -A; git commit -qm Gone`;
  const session = await start(url, scriptedModel().calls("bash", { command }).says("Done."));
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "refused" });
  expect(await refusals(session)).toEqual([expect.stringMatching(/not in the workspace's store/) as string]);
  expect(remote.at(`longhaul/${session.id}`)).toBeUndefined();
});

it("a store that lacks an object, or sends another, ends the session before a model is asked", async () => {
  const { store, url } = await place();
  store.lies = true;
  const lied = await start(url, scriptedModel().says("Never."));
  await expect(lied.result()).rejects.toThrow();
  store.objects.clear();
  const empty = await start(url, scriptedModel().says("Never."));
  await expect(empty.result()).rejects.toThrow();
  const ends = async (session: RunningSession) => JSON.stringify(await session.dataOf("session:ended"));
  expect(await ends(lied)).toMatch(/RepositoryUnavailable.*different content/);
  expect(await ends(empty)).toMatch(/RepositoryUnavailable.*does not have the object.*Leave git.lfs out/);
  expect([...lied.model.requests, ...empty.model.requests]).toEqual([]);
});

it("without git.lfs files stay pointers", async () => {
  const { store, url } = await place();
  const script = scriptedModel().calls("bash", { command: "head -1 here.bin; git status --porcelain" });
  const session = await start(url, script.says("Done."), { lfs: false });
  expect(await session.result()).toMatchObject({ status: "completed" });
  expect((await resultTexts(agent.database.store, session.id))[0]).toMatch(/^version https:\/\/git-lfs/);
  expect(store.seen).toEqual([]);
});
