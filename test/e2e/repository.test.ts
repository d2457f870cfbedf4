import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, describe, expect, it, test } from "vitest";
import type { SessionGit } from "../../activities/config/git-settings.ts";
import type { DeliveryOrder } from "../../activities/contract/delivery.ts";
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import { readStatus } from "../../client/sessions/session-status.ts";
import { deliverSession } from "../../client/watch/deliver-session.ts";
import { useAgent } from "../support/agent-harness.ts";
import { CANARY } from "../support/canary.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { clientServices, quietOutput, retry, sessionRow } from "../support/client-services.ts";
import { type AtEnd, emptyFolder } from "../support/empty-folder.ts";
import { createFakeForge } from "../support/fake-forge.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { gitIn, makeRemote, onRepository, serveGit } from "../support/remotes.ts";
import { type ModelScript, scriptedModel, text } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();
/** Its tests are concurrent: what they make goes after all of them. */
const ends: (() => Promise<void> | void)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
});
const end: AtEnd = (undo) => void ends.push(undo);
const remote = (files?: Readonly<Record<string, string>>) => makeRemote(files, { end });

const start = (url: string, script: ModelScript, git: Partial<SessionGit> = {}) =>
  agent.start(script, { config: onRepository(url, git) });

const bash = (script: ModelScript, command: string) => script.calls("bash", { command });

// Mostly waits, for containers and for Git.
describe.concurrent("a session on a repository", () => {
  it("pushes the agent's commits to its own branch, and leaves the default branch alone", async () => {
    const place = remote({ "README.md": "# Here\n", "AGENTS.md": "Use tabs.\n" });
    const main = place.at("main");
    let script = bash(scriptedModel(), "git log --oneline | wc -l; git remote -v; git status -sb; ls");
    script = bash(script, "echo one > one; git add one; git commit -qm One");
    script = bash(script, "echo two > two; git add two; git commit -qm Two; git rev-parse HEAD");
    const session = await start(place.url, script.says("Two commits."));
    const closed = await session.result();
    expect(closed).toMatchObject({ status: "completed", delivery: "done" });
    const branch = `longhaul/${session.id}`;
    expect(gitIn(place.folder, "log", "--format=%s by %an", branch)).toBe(
      `Two by Longhaul\nOne by Longhaul\nChange README.md, AGENTS.md by Ada`,
    );
    expect(place.at("main")).toBe(main);
    const [fetched] = await session.dataOf("git:fetched");
    expect(fetched).toMatchObject({ url: place.url, ref: "main", commit: main, branch });
    expect(await session.dataOf("git:pushed")).toEqual([{ branch, commit: place.at(branch), commits: 2 }]);
    // The repository's AGENTS.md is at the beginning of the first request.
    expect(JSON.stringify(session.model.requests[0])).toContain("Use tabs.");
    await checkSession(agent, session);
  });

  it("commits the remaining changes at the end, but no ignored and no huge file", async () => {
    const place = remote({ ".gitignore": "*.log\n", "README.md": "x" });
    const session = await start(
      place.url,
      bash(
        scriptedModel(),
        "echo left > 'left over'; echo no > debug.log; head -c 11534336 /dev/urandom > big.bin; rm README.md; mkdir sub; git init -q sub/inner",
      ).says("Done."),
    );
    expect(await session.result()).toMatchObject({ delivery: "done" });
    const branch = `longhaul/${session.id}`;
    expect(gitIn(place.folder, "ls-tree", "-r", "--name-only", branch).split("\n")).toEqual([
      ".gitignore",
      "left over",
    ]);
    const [left] = await session.dataOf("git:left-out");
    expect(JSON.stringify(left)).toContain("big.bin");
    await checkSession(agent, session);
  });

  it("refuses to push over another person's commit, and keeps the work", async () => {
    const place = remote();
    const pushed = Promise.withResolvers<void>();
    const session = await start(
      place.url,
      bash(bash(scriptedModel(), "echo 1 > one"), "git add -A; git commit -qm Mine").replies(async () => {
        await pushed.promise;
        return { parts: [text("Done.")] };
      }),
      { branch: "shared" },
    );
    await session.until("git:fetched");
    const theirs = place.commit("shared", { theirs: "theirs\n" });
    pushed.resolve();
    expect(await session.result()).toMatchObject({ status: "completed", delivery: "refused" });
    expect(place.at("shared")).toBe(theirs);
    expect(await session.dataOf("git:refused")).toEqual([
      { branch: "shared", reason: expect.stringContaining("did not make") as string },
    ]);
    const files = await readWorkspace(agent.database.store.db, session.id);
    expect(files?.map(({ path }) => path)).toContain("one");
    await checkSession(agent, session);
  });

  it("runs nothing of the workspace's configuration on the worker, and shows its token nowhere", async () => {
    const place = remote();
    const server = await serveGit(place, CANARY, undefined, end);
    const trap = `${place.folder}-trap`;
    const url = `${server.origin}/acme/app.git`;
    const session = await start(
      url,
      bash(
        scriptedModel(),
        [
          `printf '#!/bin/sh\\ntouch ${trap}\\n' > .git/hooks/pre-push; cp .git/hooks/pre-push .git/hooks/reference-transaction`,
          "chmod +x .git/hooks/*",
          `git config core.fsmonitor 'touch ${trap}'`,
          `git config url.file:///nowhere.insteadOf ${server.origin}`,
          "echo 1 > one; env; cat .git/config; git remote -v",
        ].join("\n"),
      ).says("Done."),
    );
    expect(await session.result()).toMatchObject({ delivery: "done" });
    expect(place.at(`longhaul/${session.id}`)).toBeDefined();
    expect(existsSync(trap)).toBe(false);
    expect(server.seen.allowed).toBeGreaterThan(2);
    const everything = JSON.stringify([
      await session.events(),
      await readWorkspace(agent.database.store.db, session.id).then((files) =>
        files?.map((file) => ("bytes" in file ? Buffer.from(file.bytes).toString("latin1") : "")),
      ),
      (await session.handle.fetchHistory()).events?.map((event) => JSON.stringify(event)),
    ]);
    expect(everything).not.toContain(CANARY);
    expect(everything).not.toContain(Buffer.from(`x-access-token:${CANARY}`).toString("base64").slice(0, 40));
    await checkSession(agent, session);
  });

  it("ends before any model call if the repository denies access", async () => {
    const place = remote();
    const server = await serveGit(place, "another password", undefined, end);
    const session = await start(`${server.origin}/acme/app.git`, scriptedModel().says("Never."));
    await expect(session.result()).rejects.toThrow();
    const [ended] = await session.dataOf("session:ended");
    expect(JSON.stringify(ended)).toMatch(/RepositoryUnavailable.*LONGHAUL_GIT_TOKEN/);
    expect(session.model.requests).toEqual([]);
  });

  it("is delivered after its end, with the forge's existing pull request, and keeps its outcome", async () => {
    const place = remote();
    const forge = createFakeForge(CANARY, () =>
      gitIn(place.folder, "branch", "--format=%(refname:short)").split("\n"),
    );
    const server = await serveGit(place, CANARY, forge.handle, end);
    const script = bash(scriptedModel(), "echo 1 > one; git add -A; git commit -qm One").says("All done.");
    const session = await start(`${server.origin}/acme/app.git`, script, {
      push: "never",
      forge: "github",
    });
    expect(await session.result()).toMatchObject({ status: "completed", delivery: "none" });
    const branch = `longhaul/${session.id}`;
    expect(place.at(branch)).toBeUndefined();

    const output: string[] = [];
    const deliver = async (order: DeliveryOrder) =>
      deliverSession(clientServices(agent), await sessionRow(agent, session.id), order, quietOutput(output));
    expect(await deliver({ push: true, pr: "none" })).toBe(0);
    expect(output.join("")).toBe(`${branch} ${place.at(branch)}\n`);

    // A person opened it between our check and our creation: 422, and then it is found.
    gitIn(place.folder, "branch", "-f", "unrelated", "main");
    forge.requests.push({ number: 1, branch, into: "main", title: "Theirs", body: "", draft: false });
    forge.blindLookups = 1;
    expect(await deliver({ push: true, pr: "ready", title: "Add one" })).toBe(0);
    expect(await session.dataOf("git:pull-request")).toMatchObject([{ number: 1, created: false }]);
    // It stays as they wrote it.
    expect(forge.requests).toMatchObject([{ title: "Theirs", body: "" }]);
    const status = await readStatus(clientServices(agent), await sessionRow(agent, session.id));
    expect(status).toMatchObject({
      status: "completed",
      delivery: "done",
      git: { branch, pushed: place.at(branch), pullRequest: "https://forge.example/acme/app/pull/1" },
    });
    expect(session.model.requests).toHaveLength(2);
  });

  it("plans on a read-only clone, and pushes the result once the plan was approved", async () => {
    const place = remote({ "README.md": "# Here\n" });
    const script = bash(scriptedModel(), "cat README.md; touch new")
      .calls("exit_plan", { plan: "# Write new" })
      .calls("bash", { command: "echo new > new; git add -A; git commit -qm New" })
      .says("Done.");
    const session = await agent.start(script, {
      config: { ...onRepository(place.url, { push: "saves" }), plan: true },
    });
    await session.until("question:asked");
    expect((await resultTexts(agent.database.store, session.id))[0]).toMatch(
      /^# Here\n.*Read-only file system/,
    );
    expect(await session.dataOf("git:pushed")).toEqual([]);
    await session.handle.signal("answer", { action: "allow" });
    expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
    expect(gitIn(place.folder, "log", "--format=%s", `main..longhaul/${session.id}`)).toBe("New");
    await checkSession(agent, session);
  });

  it("pushes only over its own commits after a reset, and the abandoned ones stay in the relay", async () => {
    const place = remote();
    const script = bash(scriptedModel(), "echo 1 > one; git add -A; git commit -qm First").says("Done.");
    const session = await start(
      place.url,
      bash(script, "echo 2 > two; git add -A; git commit -qm Second").says("Again."),
    );
    await session.result();
    const branch = `longhaul/${session.id}`;
    const first = place.at(branch);
    const { runId } = await retry(agent, session.id, 1);
    await agent.client.workflow.getHandle(session.id, runId).result();
    expect(gitIn(place.folder, "log", "--format=%s", `main..${branch}`)).toBe("Second");
    expect(await session.dataOf("git:pushed")).toMatchObject([
      { commit: first, commits: 1 },
      { commit: place.at(branch), forced: true },
    ]);
  });
});

test("a worker killed in the clone, before the push and after it leaves one commit, pushed once", async () => {
  const remote = makeRemote();
  const server = await serveGit(remote, CANARY);
  const folder = emptyFolder();
  const session = await startKillableSession(
    agent.database,
    scriptedModel().calls("bash", { command: "echo mine > mine" }).says("Done."),
    {
      environment: { LONGHAUL_GIT_TOKEN: CANARY, LONGHAUL_GIT_FOLDER: folder },
      config: onRepository(`${server.origin}/acme/app.git`),
    },
  );
  for (const point of [
    server.hold("git-upload-pack", "before"),
    server.hold("git-receive-pack", "before"),
    server.hold("git-receive-pack", "after"),
  ]) {
    const worker = await session.startWorker();
    await point.reached;
    await worker.kill();
    point.drop();
  }
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed", delivery: "done" });
  const branch = `longhaul/${session.id}`;
  expect(gitIn(remote.folder, "rev-list", "--count", `main..${branch}`)).toBe("1");
  const pushed = await session.dataOf("git:pushed");
  expect(pushed).toEqual([{ branch, commit: remote.at(branch), commits: 1 }]);
  await checkSession(session.services, session, { kills: 3 });
});

it("a repository in the SHA-256 format is worked on and pushed to", async () => {
  const remote = makeRemote();
  rmSync(remote.folder, { recursive: true });
  mkdirSync(remote.folder);
  gitIn(remote.folder, "init", "-q", "--bare", "-b", "main", "--object-format=sha256");
  const clone = `${remote.folder}-work`;
  gitIn(dirname(clone), "init", "-q", "--object-format=sha256", clone);
  gitIn(clone, "commit", "-q", "--allow-empty", "-m", "One");
  gitIn(clone, "push", "-q", remote.folder, "HEAD:main");
  const script = scriptedModel().calls("bash", {
    command: "echo 1 > one; git add one; git commit -qm Two; git log --oneline | wc -l",
  });
  const session = await agent.start(script.says("Done."), { config: onRepository(remote.url) });
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
  expect(gitIn(remote.folder, "log", "--format=%s", `main..longhaul/${session.id}`)).toBe("Two");
});
