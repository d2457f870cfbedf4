/** Commands decide whether a session's work is done: what the model is told, what is delivered, and what the outcome is. */
import { expect, it } from "vitest";
import type { ConfigChange } from "../support/run-config.ts";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import { findSessionRow } from "../../activities/store/reading.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { delegating } from "../support/delegating.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { gitIn, makeRemote, onRepository } from "../support/remotes.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { file } from "../support/workspace-file.ts";

const agent = useAgent();

const PROJECT = {
  "sum.js": "export const sum = (a, b) => a - b;\n",
  "test/sum.test.js":
    'import test from "node:test";\nimport assert from "node:assert";\nimport { sum } from "../sum.js";\ntest("sums", () => assert.strictEqual(sum(2, 2), 4));\n',
  "package.json": JSON.stringify({ type: "module", scripts: { test: "node --test test/*.test.js" } }),
};
const TEST = "npm test";
const MENDED = call("write_file", { path: "sum.js", content: "export const sum = (a, b) => a + b;\n" });

const verify = (more: object = {}) => ({ verify: verifySchema.parse({ commands: [TEST], ...more }) });

function onProject(more: object = {}) {
  const place = makeRemote(PROJECT);
  return { place, config: { ...onRepository(place.url), ...verify(more) } satisfies ConfigChange };
}

const rowOf = (id: string) => findSessionRow(agent.database.store.db, id);

it("passes at once: no message, and what is delivered is what was verified", async () => {
  const { place, config } = onProject();
  const session = await agent.start(scriptedModel().answers(MENDED).says("Done."), { config });
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "done", verified: "passed" });
  const [seen] = await session.dataOf("verify:ended");
  expect(seen).toMatchObject({ command: TEST, outcome: "passed", exitCode: 0, round: 0, how: "exit code 0" });
  expect(session.model.requests).toHaveLength(2);
  expect(await rowOf(session.id)).toMatchObject({ verified: "passed" });
  expect((await session.until("session:ended")).data).toMatchObject({ verified: "passed" });
  expect(gitIn(place.folder, "show", `longhaul/${session.id}:sum.js`)).toContain("a + b");
  await checkSession(agent, session);
});

it("tells the model of a failure and why, and verifies again what it mends", async () => {
  const { place, config } = onProject();
  const script = scriptedModel()
    .calls("bash", { command: "echo // >> sum.js" })
    .says("All tests pass.")
    .answers(MENDED)
    .says("Mended.");
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({ result: "Mended.", verified: "passed" });
  expect((await session.dataOf("verify:ended")).map(({ outcome, round }) => [round, outcome])).toEqual([
    [0, "failed"],
    [1, "passed"],
  ]);
  const told = JSON.stringify(session.model.requests[2]?.items.at(-1));
  expect(told).toContain("Your work was verified and did not pass: `npm test` (exit code 1");
  expect(told).toContain("Round 1 of 3");
  expect(told).toContain("0 !== 4");
  expect(gitIn(place.folder, "show", `longhaul/${session.id}:sum.js`)).toContain("a + b");
  await checkSession(agent, session);
});

it("ends after its rounds, delivers a draft, and says what failed", async () => {
  const { config } = onProject({ rounds: 2 });
  const script = scriptedModel()
    .says("All tests pass.")
    .calls("bash", { command: "echo // 1 >> sum.js" })
    .says("Now.")
    .calls("bash", { command: "echo // 2 >> sum.js" })
    .says("Now, really.");
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({
    status: "completed",
    result: "Now, really.",
    verified: "failed",
    delivery: "done",
  });
  expect(await session.dataOf("verify:ended")).toHaveLength(3);
});

it("gives no round to a model that changes nothing, and delivers nothing if it is held", async () => {
  const { place, config } = onProject({ onFail: "hold" });
  const script = scriptedModel()
    .calls("bash", { command: "echo // 1 >> sum.js" })
    .says("Done.")
    .says("It is the test that is wrong.");
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({ verified: "failed", delivery: "refused" });
  expect(await session.dataOf("verify:ended")).toHaveLength(2);
  expect((await session.until("git:refused")).data.reason).toMatch(
    /not verified: npm test \(exit code 1\); no progress since the last look/,
  );
  expect(place.at(`longhaul/${session.id}`)).toBeUndefined();
});

it.each([
  ["no-such-program", "unavailable", /exit code 127: there is no such command/],
  ["touch x && ./x", "unavailable", /exit code 126/],
  ["kill -9 $$", "failed", /SIGKILL|exit code 137/],
  ["exit 130", "failed", /exit code 130/],
])("%j says %s of the work", async (command, outcome, how) => {
  const config = verify({ commands: [command], rounds: 0 });
  const session = await agent.start(scriptedModel().says("Done."), { config });
  expect(await session.result()).toMatchObject({ status: "completed", verified: outcome });
  expect((await session.dataOf("verify:ended"))[0]?.how).toMatch(how);
});

it("ends a command at its time with all that it started, whatever it prints and waits for", async () => {
  const command = "read line; sleep 300 & yes | head -c 50000000; sleep 300";
  const config = verify({ commands: [command], rounds: 0, timeout: 2_000 });
  const session = await agent.start(scriptedModel().says("Done."), { config });
  expect(await session.result()).toMatchObject({ verified: "failed" });
  const [seen] = await session.dataOf("verify:ended");
  expect(seen?.how).toBe("time over: ended after 2 s (verify.timeout)");
  expect(seen?.tail.length).toBeLessThanOrEqual(8_100);
});

it("runs again what a command changed, and fails if it changes it each time", async () => {
  const once = onProject({ commands: ["printf 'export const sum = (a, b) => a + b;\\n' > sum.js", TEST] });
  const mended = await agent.start(scriptedModel().says("Done."), { config: once.config });
  expect(await mended.result()).toMatchObject({ verified: "passed", delivery: "done" });
  expect(gitIn(once.place.folder, "show", `longhaul/${mended.id}:sum.js`)).toContain("a + b");
  const always = onProject({ commands: ["date +%N >> times.txt"], rounds: 0 });
  const changing = await agent.start(scriptedModel().says("Done."), { config: always.config });
  expect(await changing.result()).toMatchObject({ verified: "failed" });
  expect((await changing.dataOf("verify:ended"))[0]?.how).toContain("the commands change files each time");
});

it("names checks that were changed, by the worker's own git, whatever the workspace's says", async () => {
  const weaken =
    "sed -i 's/4/0/' test/sum.test.js && git commit -qam 'Mend' && git update-index --assume-unchanged package.json";
  const protect = ["test/**", "package.json"];
  const reported = onProject({ protect });
  const one = await agent.start(scriptedModel().calls("bash", { command: weaken }).says("Done."), {
    config: reported.config,
  });
  expect(await one.result()).toMatchObject({ verified: "changed-checks", delivery: "done" });
  expect((await one.dataOf("verify:ended"))[0]).toMatchObject({ changed: ["test/sum.test.js"] });
  const refused = onProject({ protect, onProtected: "refuse" });
  const two = await agent.start(scriptedModel().calls("bash", { command: weaken }).says("Done."), {
    config: refused.config,
  });
  expect(await two.result()).toMatchObject({ verified: "changed-checks", delivery: "refused" });
  expect(refused.place.at(`longhaul/${two.id}`)).toBeUndefined();
  const hidden = onProject({ protect });
  const hide =
    "git update-index --assume-unchanged test/sum.test.js && sed -i 's/4/0/' test/sum.test.js && echo // >> sum.js";
  const three = await agent.start(scriptedModel().calls("bash", { command: hide }).says("Done."), {
    config: hidden.config,
  });
  expect(await three.result()).toMatchObject({ verified: "changed-checks" });
});

it("verifies at a step limit too, without rounds, and the outcome is the limit's", async () => {
  const workspace = await packWorkspace(Object.entries(PROJECT).map(([path, text]) => file(path, text)));
  const config = { ...verify(), limits: { maxSteps: 1 } };
  const script = scriptedModel().calls("bash", { command: "true" }).says("Not done.");
  const session = await agent.start(script, { config, workspace });
  expect(await session.result()).toMatchObject({ status: "max_steps", verified: "failed" });
  expect(session.model.requests).toHaveLength(2);
});

it("a message ends the look, is read, and the work is verified after the next answer", async () => {
  const config = verify({ commands: ["test -f second || sleep 300"] });
  const script = scriptedModel().says("Done.").calls("bash", { command: "touch second" }).says("Done again.");
  const session = await agent.start(script, { config });
  await session.until("verify:started");
  await session.handle.signal("guidance", { id: "more", text: "Make the second file, too." });
  expect(await session.result()).toMatchObject({ result: "Done again.", verified: "passed" });
  expect(await session.dataOf("verify:ended")).toHaveLength(1);
  expect(JSON.stringify(session.model.requests[1]?.items.at(-1))).toContain("Make the second file");
});

it("an interrupt ends the look, and the work is verified after the next answer", async () => {
  const config = verify({ commands: ["test -f /tmp/second || { touch /tmp/second; sleep 300; }"] });
  const script = scriptedModel().says("Done.").says("Done again.");
  const session = await agent.start(script, { config });
  await session.until("verify:started");
  await session.handle.signal("interrupt");
  expect(await session.result()).toMatchObject({ result: "Done again.", verified: "passed" });
  expect(await session.dataOf("verify:ended")).toHaveLength(1);
});

it("is of a session's own work: a delegate's is not verified, a plan's is", async () => {
  const config = { ...verify({ commands: ["true"] }), ...delegating() };
  const script = scriptedModel().calls("delegate", { task: "Look around." }).says("Looked.").says("Done.");
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({ result: "Done.", verified: "passed" });
  const { rows } = await agent.database.store.pool.query<{ session_id: string }>(
    "select session_id from verifications where session_id like $1",
    [`${session.id}%`],
  );
  expect(rows).toEqual([{ session_id: session.id }]);
  const planned = await agent.start(scriptedModel().says("First this, then that."), {
    config: { ...verify({ commands: ["true"], rounds: 0 }), plan: true },
  });
  expect(await planned.result()).toMatchObject({ status: "completed", verified: "passed" });
});

it("a cancel ends the look, and nothing is delivered", async () => {
  const { place, config } = onProject({ commands: ["sleep 300"] });
  const session = await agent.start(scriptedModel().answers(MENDED).says("Done."), { config });
  await session.until("verify:started");
  await session.handle.cancel();
  await expect(session.result()).rejects.toThrow();
  expect(await rowOf(session.id)).toMatchObject({ status: "cancelled", verified: null });
  expect(place.at(`longhaul/${session.id}`)).toBeUndefined();
});

it("runs a command once, though its worker is killed while it runs", async () => {
  const config = verify({ commands: ["echo ran >> /tmp/runs; sleep 5; test $(wc -l < /tmp/runs) = 1"] });
  const session = await startKillableSession(agent.database, scriptedModel().says("Done."), { config });
  const first = await session.startWorker();
  await session.until("verify:started");
  await first.kill();
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed", verified: "passed" });
  await checkSession(session.services, session);
}, 120_000);

it("runs again in a new sandbox if its own is lost", async () => {
  const config = verify({ commands: ["test -f /tmp/again || { touch /tmp/again; sleep 4; }"] });
  const session = await agent.start(scriptedModel().says("Done."), { config });
  await session.until("verify:started");
  await agent.docker.getContainer(`longhaul-${session.id}`).remove({ force: true });
  expect(await session.result()).toMatchObject({ status: "completed", verified: "passed" });
}, 120_000);

it("checks the answer's schema first, and masks what a command prints", async () => {
  const outputSchema = { type: "object", required: ["ok"] };
  const secret = "sk-canary-5f1e2d3c4b5a69788796a5b4c3d2e1f0";
  const config = {
    ...verify({ commands: [`printf '\\033[31mError: ${secret}\\033[0m\\n'; exit 1`], rounds: 0 }),
    outputSchema,
  };
  const script = scriptedModel().says("Done.").says('{"ok": true}');
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({ result: '{"ok":true}', verified: "failed" });
  const seen = await session.dataOf("verify:ended");
  expect(seen).toHaveLength(1);
  expect(seen[0]?.tail).toMatch(/^Error: \[/);
});
