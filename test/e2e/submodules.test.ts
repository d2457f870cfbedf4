import { expect, it, onTestFinished } from "vitest";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import type { SessionGit } from "../../activities/config/git-settings.ts";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { CANARY, startAgent, useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { createLfsServer, pointerOf } from "../support/lfs-server.ts";
import { gitIn, makeRemote, serveGit, type Remote, onRepository } from "../support/remotes.ts";
import { scriptedModel, type ModelScript } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();

const start = (url: string, script: ModelScript, git: Partial<SessionGit> = {}, by = agent) =>
  by.start(script, { config: onRepository(url, { submodules: true, ...git }) });

const entry = (name: string, url: string, path = name) =>
  `[submodule "${name}"]\n\tpath = ${path}\n\turl = ${url}\n`;

function makeBeside(beside: Remote, name: string, files: Readonly<Record<string, string>>): Remote {
  return makeRemote(files, { name, beside });
}

/** app → libs/one → inner, each named relative to its parent. */
function nested() {
  const app = makeRemote();
  const inner = makeBeside(app, "acme/inner.git", { "inner.txt": "inner\n" });
  const lib = makeBeside(app, "acme/lib.git", { "lib.txt": "lib\n" });
  lib.commit("main", { ".gitmodules": entry("inner", "../inner.git") }, { inner: inner.at("main") ?? "" });
  const modules = entry("one", "../lib.git", "libs/one");
  app.commit("main", { ".gitmodules": modules }, { "libs/one": lib.at("main") ?? "" });
  return { app, lib, inner };
}

it("submodules are checked out on all levels, and changes in them are reported, not pushed", async () => {
  const { app, lib, inner } = nested();
  const script = scriptedModel()
    .calls("bash", {
      command:
        "git submodule status --recursive; cat libs/one/lib.txt libs/one/inner/inner.txt; cat libs/one/.git; git status --porcelain",
    })
    .calls("bash", {
      command: "cd libs/one && echo more >> lib.txt && git commit -qam More && git log --oneline | wc -l",
    })
    .calls("bash", { command: "echo 1 > one; git add one; git commit -qm One" });
  const session = await start(app.url, script.says("Done."));
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
  const [first = ""] = await resultTexts(agent.database.store, session.id);
  expect(first.split("\n").map((line) => line.trimEnd())).toEqual([
    expect.stringMatching(`^ ${lib.at("main")} libs/one `) as string,
    expect.stringMatching(`^ ${inner.at("main")} libs/one/inner `) as string,
    "lib",
    "inner",
    "gitdir: ../../.git/modules/one",
  ]);
  const branch = `longhaul/${session.id}`;
  expect(gitIn(app.folder, "log", "--format=%s", `main..${branch}`)).toBe("One");
  expect(gitIn(app.folder, "rev-parse", `${branch}:libs/one`)).toBe(lib.at("main"));
  expect(await session.dataOf("git:left-out")).toEqual([
    { count: 1, files: [{ path: "libs/one", bytes: 0, reason: "submodule" }] },
  ]);
  await checkSession(agent, session);
});

it("submodules are in a fresh sandbox, where the work is verified, as they would be delivered", async () => {
  const { app } = nested();
  const commands = [
    'test "$(cat libs/one/lib.txt libs/one/inner/inner.txt one | tr "\\n" " ")" = "lib inner 1 "',
  ];
  const verify = verifySchema.parse({ commands, rounds: 0, where: "fresh" });
  const script = scriptedModel()
    .calls("bash", { command: "echo 1 > one; echo changed > libs/one/lib.txt" })
    .says("Done.");
  const config = { ...onRepository(app.url, { submodules: true }), verify };
  const session = await agent.start(script, { config });
  const closed = await session.result();
  expect((await session.dataOf("verify:ended")).map(({ how }) => how)).toEqual(["exit code 0"]);
  expect(closed).toMatchObject({ verified: "passed", delivery: "done" });
}, 120_000);

it("a push is refused that refers to a submodule's unpublished commit", async () => {
  const { app } = nested();
  const command =
    "(cd libs/one && git commit -q --allow-empty -m Mine); git add libs/one; git commit -qm 'Use mine'";
  const session = await start(app.url, scriptedModel().calls("bash", { command }).says("Done."));
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "refused" });
  expect(await session.dataOf("git:refused")).toMatchObject([
    { reason: expect.stringMatching(/has to be on its own remote first/) as string },
  ]);
  expect(app.at(`longhaul/${session.id}`)).toBeUndefined();
});

it("each host gets its own token alone, and a submodule has its files in LFS", async () => {
  const app = makeRemote();
  const { text, oid } = pointerOf("large\n");
  const attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n";
  const lib = makeRemote({ ".gitattributes": attributes, "large.bin": text });
  const store = createLfsServer("lib-password");
  store.objects.set(oid, Buffer.from("large\n"));
  const given = new Set<string>();
  const [appServer, libServer] = await Promise.all([
    serveGit(app, "app-password"),
    serveGit(lib, (password) => given.add(password) && password === "lib-password", store.handle),
  ]);
  const libUrl = `${libServer.origin.replace("127.0.0.1", "localhost")}/acme/app.git`;
  app.commit("main", { ".gitmodules": entry("lib", libUrl) }, { lib: lib.at("main") ?? "" });
  const url = `${appServer.origin}/acme/app.git`;
  const access = (environment: Readonly<Record<string, string>>) => {
    const LONGHAUL_GIT_FOLDER = `${app.folder}-worker-${Object.keys(environment).length}`;
    return createGitAccess({ PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER, ...environment });
  };
  const general = await startAgent({ git: access({ LONGHAUL_GIT_TOKEN: "app-password" }) });
  const own = await startAgent({
    git: access({ LONGHAUL_GIT_TOKEN: "app-password", LONGHAUL_GIT_TOKEN_LOCALHOST: "lib-password" }),
  });
  onTestFinished(async () => void (await Promise.all([general.close(), own.close()])));
  const place = libUrl.replace(/^http:\/\/|\.git$/g, "");
  // Neither the token for all hosts nor the one for that host counts without the person's word.
  for (const by of [general, own]) {
    const without = await start(url, scriptedModel().says("Never."), { lfs: true }, by);
    await expect(without.result()).rejects.toThrow();
    expect(JSON.stringify(await without.dataOf("session:ended"))).toContain(
      `localhost is in a private network; to use it in sessions on this repository, add git.also: [${place}]`,
    );
  }
  expect(given).toEqual(new Set());
  const script = scriptedModel().calls("bash", {
    command: "cat lib/large.bin; git -C lib status --porcelain",
  });
  const session = await start(url, script.says("Done."), { lfs: true, also: [place] }, own);
  expect(await session.result()).toMatchObject({ status: "completed" });
  expect((await resultTexts(own.database.store, session.id))[0]?.trim()).toBe("large");
  expect([...given].filter((password) => password !== "")).toEqual(["lib-password"]);
  expect([...store.passwords]).toEqual(["lib-password"]);
  expect(CANARY).not.toBe("lib-password");
});

it.each([
  ["a program", "ext::sh -c touch% /tmp/longhaul-pwned", "lib"],
  ["an option", "--upload-pack=touch /tmp/longhaul-pwned", "lib"],
  ["a name that leads out", "../lib.git", "../../hooks"],
])("a .gitmodules with %s ends the session before a model is asked", async (_what, address, name) => {
  const app = makeRemote();
  app.commit("main", { ".gitmodules": entry(name, address, "lib") }, { lib: app.at("main") ?? "" });
  const session = await start(app.url, scriptedModel().says("Never."));
  await expect(session.result()).rejects.toThrow();
  expect(JSON.stringify(await session.dataOf("session:ended"))).toMatch(/RepositoryUnavailable.*submodule/);
  expect(session.model.requests).toEqual([]);
});
