/** What a session did is delivered, or named; what a delivery came to is read from its own record. */
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { findSandbox } from "../../activities/store/sandboxes.ts";
import type { SessionGit } from "../../activities/config/git-settings.ts";
import type { DeliveryOrder } from "../../activities/contract/delivery.ts";
import { deliverSession } from "../../client/watch/deliver-session.ts";
import { useAgent } from "../support/agent-harness.ts";
import { CANARY } from "../support/canary.ts";
import { createFakeForge } from "../support/fake-forge.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { clientServices, quietOutput, retry, sessionRow } from "../support/client-services.ts";
import type { AtEnd } from "../support/empty-folder.ts";
import { gitIn, makeRemote, onRepository, type Remote, serveGit } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { eventually } from "../support/eventually.ts";

const agent = useAgent();
const ends: (() => Promise<void> | void)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
});
const end: AtEnd = (undo) => void ends.push(undo);
const remote = () => makeRemote(undefined, { end });

/** A session whose only call runs the script. */
const start = (url: string, script: string, git: Partial<SessionGit> = {}) =>
  agent.start(scriptedModel().calls("bash", { command: script }).says("Done."), {
    config: onRepository(url, git),
  });

/** `longhaul push ID`, or `pr`: its exit code, and what it prints. */
async function push(id: string, pr: DeliveryOrder["pr"] = "none") {
  const said: string[] = [];
  const code = await deliverSession(
    clientServices(agent),
    await sessionRow(agent, id),
    { push: true, pr },
    { ...quietOutput(said), note: (line) => void said.push(line) },
  );
  return { code, said: said.join("") };
}

/** A hook of the remote's. @returns removes it */
function hook(place: Remote, name: string, script: string): () => void {
  const file = join(place.folder, "hooks", name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return () => rmSync(file);
}

describe.concurrent("a delivery", () => {
  it("takes the one branch with commits if HEAD has none, and says so", async () => {
    const place = remote();
    const session = await start(
      place.url,
      "git checkout -q -b feature && echo one > one.txt && git add . && git commit -qm work && git checkout -q -",
    );
    expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
    const branch = `longhaul/${session.id}`;
    expect(gitIn(place.folder, "log", "--format=%s", `main..${branch}`)).toBe("work");
    expect(await session.dataOf("git:pushed")).toMatchObject([{ branch, from: "feature", commits: 1 }]);
    expect(await push(session.id)).toMatchObject({
      code: 0,
      said: expect.stringContaining("Nothing") as string,
    });
    await checkSession(agent, session);
  });

  it.each([
    ["a stash", "echo one > one.txt && git stash -qu", /stash@\{0\}/],
    [
      "two branches",
      "for b in a b; do git checkout -qb $b && echo $b > $b && git add . && git commit -qm $b && git checkout -q -; done",
      /the branch a \(1 commit\), the branch b \(1 commit\)/,
    ],
    [
      "a worktree outside of the repository",
      "git worktree add -q --detach /tmp/tree && echo one > /tmp/tree/one.txt",
      /the worktree \/tmp\/tree \(1 change\)/,
    ],
  ])("names %s and is refused, by `push` too", async (_what, script, named) => {
    const place = remote();
    const session = await start(place.url, script);
    expect(await session.result()).toMatchObject({ status: "completed", delivery: "refused" });
    expect(await session.dataOf("git:left-out")).toHaveLength(1);
    expect(await session.dataOf("git:refused")).toMatchObject([
      { reason: expect.stringMatching(named) as string },
    ]);
    const again = await push(session.id);
    expect(again.code).toBe(8);
    expect(again.said).not.toContain("Nothing to deliver");
    expect(await session.dataOf("git:refused")).toHaveLength(2);
    expect(place.at(`longhaul/${session.id}`)).toBeUndefined();
  });

  it("is refused by `push` as often as the remote refuses it, and made once it does not", async () => {
    const place = remote();
    const open = hook(place, "pre-receive", "echo 'not on a Friday' >&2; exit 1");
    const session = await start(place.url, "echo one > one.txt");
    expect(await session.result()).toMatchObject({ delivery: "refused" });
    expect((await push(session.id)).code).toBe(8);
    expect((await push(session.id)).code).toBe(8);
    const refused = await session.dataOf("git:refused");
    expect(refused).toHaveLength(3);
    expect(refused[0]).toMatchObject({ reason: expect.stringContaining("not on a Friday") as string });
    // The model is told, once, when it works again.
    const row = await findSandbox(agent.database.store.db, session.id);
    expect(row?.notice?.split("not on a Friday")).toHaveLength(2);
    open();
    const branch = `longhaul/${session.id}`;
    const pushed = await push(session.id);
    expect(pushed).toEqual({
      code: 0,
      said: expect.stringContaining(`${branch} ${place.at(branch)}`) as string,
    });
    expect((await push(session.id)).said).toContain("Nothing to deliver");
    gitIn(place.folder, "update-ref", "-d", `refs/heads/${branch}`);
    expect((await push(session.id)).said).toContain(`${branch} ${place.at(branch)}`);
    expect(await session.dataOf("git:pushed")).toHaveLength(2);
  });

  it("knows its own commit if the session goes back while the remote takes it", async () => {
    const place = remote();
    const open = hook(
      place,
      "post-receive",
      `touch '${place.folder}/held'; while [ -e '${place.folder}/held' ]; do sleep 0.1; done`,
    );
    const session = await agent.start(
      scriptedModel()
        .calls("bash", { command: "echo 1 > one.txt; git add -A; git commit -qm First" })
        .says("Done.")
        .calls("bash", { command: "echo 2 > two.txt; git add -A; git commit -qm Second" })
        .says("Again."),
      { config: onRepository(place.url) },
    );
    const branch = `longhaul/${session.id}`;
    const first = await eventually("the first push", () => Promise.resolve(place.at(branch)), 120_000);
    const { runId } = await retry(agent, session.id, 1);
    open();
    rmSync(join(place.folder, "held"), { force: true });
    const closed = await agent.client.workflow.getHandle(session.id, runId).result();
    expect(closed).toMatchObject({ status: "completed", delivery: "done" });
    expect(gitIn(place.folder, "log", "--format=%s", `main..${branch}`)).toBe("Second");
    expect(place.at(branch)).not.toBe(first);
    expect(await session.dataOf("git:pushed")).toMatchObject([{ commit: place.at(branch), forced: true }]);
  });

  it("is refused by `pr` as often as the forge refuses it, and says the address once it is there", async () => {
    const place = remote();
    const forge = createFakeForge(CANARY, () =>
      gitIn(place.folder, "branch", "--format=%(refname:short)").split("\n"),
    );
    forge.withoutDrafts = true;
    const server = await serveGit(place, CANARY, forge.handle, end);
    const url = `${server.origin}/acme/app.git`;
    const session = await start(url, "echo one > one.txt", { pr: "draft", forge: "github" });
    expect(await session.result()).toMatchObject({ status: "completed", delivery: "refused" });
    expect((await push(session.id, "draft")).code).toBe(8);
    expect((await push(session.id, "draft")).code).toBe(8);
    expect(await session.dataOf("git:refused")).toHaveLength(3);
    for (const _again of [1, 2])
      expect(await push(session.id, "ready")).toMatchObject({
        code: 0,
        said: expect.stringContaining("https://forge.example/acme/app/pull/1") as string,
      });
    expect(forge.requests).toMatchObject([{ number: 1, draft: false }]);
  });

  it("says that it opened a pull request, also if the forge's answer was lost", async () => {
    const place = remote();
    const forge = createFakeForge(CANARY, () =>
      gitIn(place.folder, "branch", "--format=%(refname:short)").split("\n"),
    );
    forge.loseAnswer = true;
    const server = await serveGit(place, CANARY, forge.handle, end);
    const session = await start(`${server.origin}/acme/app.git`, "echo one > one.txt", {
      pr: "draft",
      forge: "github",
    });
    expect(await session.result()).toMatchObject({ delivery: "done" });
    expect(forge.requests).toHaveLength(1);
    expect(await session.dataOf("git:pull-request")).toMatchObject([{ number: 1, created: true }]);
  });

  it.each([
    [
      "a branch in the way",
      { branch: "taken/mine" },
      /has a branch taken, so it cannot have a branch taken\/mine/,
    ],
    ["a branch with other commits", { branch: "taken" }, /has commits that the session would not start from/],
    ["a token that may only read", {}, /may read .* but not push to it/],
  ])("is known to be impossible before a model is asked: %s", async (_what, git, reason) => {
    const place = remote();
    place.commit("taken", { theirs: "theirs" });
    const server = await serveGit(place, CANARY, undefined, end);
    if (!("branch" in git)) gitIn(place.folder, "config", "http.receivepack", "false");
    const session = await start(`${server.origin}/acme/app.git`, "echo one > one.txt", git);
    await expect(session.result()).rejects.toThrow();
    expect(JSON.stringify(await session.dataOf("session:ended"))).toMatch(reason);
    expect(session.model.requests).toEqual([]);
  });

  it("removes a lock that a git left which was killed", async () => {
    const place = remote();
    const session = await start(
      place.url,
      "echo one > one.txt; touch .git/index.lock .git/HEAD.lock .git/refs/heads/x.lock",
    );
    expect(await session.result()).toMatchObject({ delivery: "done" });
    expect(place.at(`longhaul/${session.id}`)).toBeDefined();
  });
});
