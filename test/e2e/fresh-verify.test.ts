/** Commands that run in a new sandbox, on a clean checkout of what is delivered: what the agent left in its own does not reach them. */
import { expect, it } from "vitest";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import { useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { gitIn, makeRemote, onRepository } from "../support/remotes.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { cache, withTestServices } from "../support/test-services.ts";

const agent = useAgent();

const PROJECT = {
  "sum.js": "exports.sum = (a, b) => a - b;\n",
  "test/sum.test.js":
    'const test = require("node:test");\nconst { sum } = require("../sum.js");\ntest("sums", () => require("node:assert").strictEqual(sum(2, 2), 4));\n',
  "package.json": JSON.stringify({ scripts: { test: "node --test test/*.test.js" } }),
  ".gitignore": "ignored/\n",
};
const MENDED = "exports.sum = (a, b) => a + b;\n";
const fresh = (more: object = {}) =>
  verifySchema.parse({ commands: ["npm test"], rounds: 0, where: "fresh", ...more });

const setUp = { timeout: 60_000, optional: false, keep: false } as const;

/** The session ends after one command that the model says is its work. */
async function after(command: string, more: object = {}) {
  const place = makeRemote(PROJECT);
  const config = { ...onRepository(place.url), verify: fresh(more) };
  const script = scriptedModel().calls("bash", { command }).says("All tests pass.");
  const session = await agent.start(script, { config });
  const { verified } = await session.result();
  const [seen] = (await session.dataOf("verify:ended")).slice(-1);
  return { place, session, verified, seen };
}

const containersOf = async (id: string) =>
  (await agent.docker.listContainers({ all: true, filters: { label: [`longhaul.session=${id}`] } })).length;

it("passes what is delivered, and leaves no second sandbox", { timeout: 120_000 }, async () => {
  const place = makeRemote(PROJECT);
  const commands = [
    "npm test",
    "test ! -e ignored",
    "git status --short --branch",
    "test $(git log --format=%s | wc -l) = 2",
  ];
  const config = { ...onRepository(place.url), verify: fresh({ commands }) };
  const script = scriptedModel()
    .answers(call("write_file", { path: "sum.js", content: MENDED }))
    .calls("bash", { command: "mkdir ignored && touch ignored/x" })
    .says("Done.");
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({ verified: "passed", delivery: "done" });
  expect((await session.dataOf("verify:ended")).map(({ outcome }) => outcome)).toEqual(
    Array(4).fill("passed"),
  );
  expect(gitIn(place.folder, "show", `longhaul/${session.id}:sum.js`)).toContain("a + b");
  expect(await session.dataOf("base:used")).toHaveLength(1);
  expect(await containersOf(session.id)).toBe(0);
  await checkSession(agent, session);
});

it.each([
  [
    "a background process that cheats while the tests run",
    `cp sum.js /tmp/o; nohup sh -c 'while true; do if pgrep -f "[n]pm test" >/dev/null; then echo "exports.sum = () => 4;" > sum.js; else cp /tmp/o sum.js; fi; sleep 0.05; done' >/dev/null 2>&1 & echo // >> README.md`,
  ],
  [
    "a program in front of the PATH",
    "mkdir -p ~/.local/bin && for p in node npm; do printf '#!/bin/sh\\nexit 0\\n' > ~/.local/bin/$p; chmod +x ~/.local/bin/$p; done; export PATH=$HOME/.local/bin:$PATH; cp ~/.local/bin/node /tmp/node; echo // >> README.md",
  ],
  [
    "a changed ~/.bashrc",
    "for f in ~/.bashrc ~/.profile ~/.bash_profile; do echo 'npm() { return 0; }; export -f npm' >> $f; done; npm config set script-shell /bin/true --location=user; echo // >> README.md",
  ],
  [
    "files that Git ignores",
    "mkdir -p ignored && printf 'exports.sum = () => 4;' > ignored/sum.js && printf 'try { module.exports = require(\"./ignored/sum.js\"); } catch { module.exports = { sum: (a, b) => a - b }; }' > sum.js",
  ],
  ["a user's npm settings", "echo script-shell=/bin/true > ~/.npmrc; echo // >> README.md"],
])("%s has no effect", { timeout: 120_000 }, async (_what, command) => {
  const { session, verified, seen } = await after(command);
  expect(seen?.tail).toContain("0 !== 4");
  expect(verified).toBe("failed");
  expect(await containersOf(session.id)).toBe(0);
});

it("is as any sandbox of the session while it is there, and is set up", { timeout: 120_000 }, async () => {
  const place = makeRemote(PROJECT);
  const commands = ["test -f ignored/made && test ! -e /tmp/agent && sleep 6"];
  const config = {
    ...onRepository(place.url),
    verify: fresh({ commands }),
    sandbox: {
      memory: "700m",
      pids: 111,
      setup: { ...setUp, commands: ["mkdir -p ignored && touch ignored/made", "echo // >> sum.js"] },
    },
  };
  const script = scriptedModel().calls("bash", { command: "rm -r ignored; touch /tmp/agent" }).says("Done.");
  const session = await agent.start(script, { config });
  await session.until("verify:started");
  const filters = { label: [`longhaul.session=${session.id}`] };
  const [own, other] = (await agent.docker.listContainers({ filters })).toSorted(
    ({ Created: left }, { Created: right }) => left - right,
  );
  const inspect = (id = "") => agent.docker.getContainer(id).inspect();
  const [first, second] = await Promise.all([inspect(own?.Id), inspect(other?.Id)]);
  const { Mounts: _, Links: __, ...limits } = first.HostConfig;
  expect(second.HostConfig).toMatchObject(limits);
  expect(second.Config.Labels["longhaul.installation"]).toBe(first.Config.Labels["longhaul.installation"]);
  expect(second.Config.Labels["longhaul.beside"]).toBe(session.id);
  expect(await session.result()).toMatchObject({ verified: "passed" });
  expect(await containersOf(session.id)).toBe(0);
  const { Volumes: volumes } = await agent.docker.listVolumes({ filters });
  expect(volumes ?? []).toEqual([]);
});

it("has the session's services, without what the session put into them", { timeout: 240_000 }, async () => {
  const place = makeRemote(PROJECT);
  const empty = 'test "$(redis-cli -h cache ping) $(redis-cli -h cache get work)" = "PONG "';
  const sandbox = await withTestServices({ cache: await cache() });
  const config = { ...onRepository(place.url), verify: fresh({ commands: [empty] }), sandbox };
  const script = scriptedModel()
    .calls("bash", { command: "redis-cli -h cache set work done && echo // >> sum.js" })
    .calls("bash", { command: "redis-cli -h cache get work" })
    .says("Done.");
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({ verified: "passed", delivery: "done" });
  expect((await resultTexts(agent.database.store, session.id))[1]).toBe("done");
  expect(await containersOf(session.id)).toBe(0);
});

it("says that it is unavailable if the set-up fails there", { timeout: 120_000 }, async () => {
  const place = makeRemote(PROJECT);
  const setup = { ...setUp, commands: ["test -f sum.js"] };
  const config = { ...onRepository(place.url), verify: fresh({ rounds: 3 }), sandbox: { setup } };
  const script = scriptedModel().calls("bash", { command: "git rm -q sum.js" }).says("Done.");
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({ verified: "unavailable" });
  const [seen] = await session.dataOf("verify:ended");
  expect(seen?.how).toContain("the project's set-up failed at `test -f sum.js` (exit code 1)");
  expect(await containersOf(session.id)).toBe(0);
});

it("has the saved files of a session without a repository", { timeout: 120_000 }, async () => {
  const config = { verify: fresh({ commands: ["test -f made && test ! -e /tmp/agent"] }) };
  const script = scriptedModel().calls("bash", { command: "touch made /tmp/agent" }).says("Done.");
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({ verified: "passed" });
  expect(await containersOf(session.id)).toBe(0);
});

it("fails work whose commands change files, since that is not delivered", { timeout: 120_000 }, async () => {
  const script = `echo '${MENDED.trim()}' > sum.js`;
  const { verified, seen } = await after("echo // >> README.md", { commands: [script, "npm test"] });
  expect(verified).toBe("failed");
  expect(seen?.how).toBe("the commands change files that are delivered as they were before: sum.js");
});

it("tells the model of a failure, and looks again in another one", { timeout: 120_000 }, async () => {
  const place = makeRemote(PROJECT);
  const config = { ...onRepository(place.url), verify: fresh({ rounds: 1 }) };
  const script = scriptedModel()
    .calls("bash", { command: "echo // >> sum.js" })
    .says("All tests pass.")
    .answers(call("write_file", { path: "sum.js", content: MENDED }))
    .says("Mended.");
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({ verified: "passed", delivery: "done" });
  expect(await containersOf(session.id)).toBe(0);
});

it("goes on with its command if the worker is killed, and is removed", { timeout: 180_000 }, async () => {
  const place = makeRemote(PROJECT);
  const commands = ["echo ran >> /tmp/runs; sleep 6; test $(wc -l < /tmp/runs) = 1"];
  const config = { ...onRepository(place.url), verify: fresh({ commands }) };
  const script = scriptedModel().calls("bash", { command: "echo // >> sum.js" }).says("Done.");
  const session = await startKillableSession(agent.database, script, { config });
  const first = await session.startWorker();
  await session.until("verify:started");
  await first.kill();
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed", verified: "passed" });
  expect(await containersOf(session.id)).toBe(0);
  await checkSession(session.services, session);
});

it("is gone when a person cancels, and when the session is over", { timeout: 120_000 }, async () => {
  const place = makeRemote(PROJECT);
  const config = { ...onRepository(place.url), verify: fresh({ commands: ["sleep 300"] }) };
  const session = await agent.start(scriptedModel().says("Done."), { config });
  await session.until("verify:started");
  await session.handle.cancel();
  await expect(session.result()).rejects.toThrow();
  expect(await containersOf(session.id)).toBe(0);
});
