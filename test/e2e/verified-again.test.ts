/** Work that is looked at more than once: after a loss, at a limit, after a reset, in a later run; and what a later order says of it. */
import { afterAll, expect, it } from "vitest";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import { latestCheckpoint } from "../../activities/store/checkpoints.ts";
import { findSessionRow, readWhole } from "../../activities/store/reading.ts";
import { unpackManifest } from "../../activities/store/workspace-manifest.ts";
import { deliverSession } from "../../client/watch/deliver-session.ts";
import { useAgent, type RunningSession } from "../support/agent-harness.ts";
import { CANARY } from "../support/canary.ts";
import { clientServices, quietOutput, retry, sessionRow } from "../support/client-services.ts";
import { eventually } from "../support/eventually.ts";
import { createFakeForge } from "../support/fake-forge.ts";
import { gitIn, makeRemote, onRepository, serveGit } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";

const agent = useAgent();
const ends: (() => Promise<void> | void)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
});

const MENDED = "test -f mended";
const verify = (commands: readonly string[], more: object = {}) => ({
  verify: verifySchema.parse({ commands, rounds: 0, ...more }),
});
const rowOf = (id: string) => findSessionRow(agent.database.store.db, id);
const looksOf = async (id: string) =>
  (await readWhole(agent.database.store.db, id)).verifications.map(({ epoch, step, round, outcome }) => [
    `e${epoch}s${step}v${round}`,
    outcome,
  ]);

/** Removes each sandbox of a session in which a look begins, so many times. */
async function loseSandboxes(session: RunningSession, label: string, times: number): Promise<void> {
  const filters = { label: [`${label}=${session.id}`] };
  for (let time = 1; time <= times; time += 1) {
    const started = await eventually(
      `look ${time}`,
      async () => {
        const begun = (await session.dataOf("verify:started")).length;
        return begun >= time ? agent.docker.listContainers({ filters }) : undefined;
      },
      180_000,
    );
    for (const { Id: id } of started) await agent.docker.getContainer(id).remove({ force: true });
  }
}

it("counts as not verifiable if its sandbox is lost twice", { timeout: 240_000 }, async () => {
  const config = verify(["sleep 300"], { rounds: 3 });
  const session = await agent.start(scriptedModel().says("Done."), { config });
  await loseSandboxes(session, "longhaul.session", 2);
  expect(await session.result()).toMatchObject({ status: "completed", verified: "unavailable" });
  const seen = await session.dataOf("verify:ended");
  expect(seen.map(({ how }) => how)).toEqual(["the sandbox was lost 2 times while the commands ran"]);
});

it("gets another fresh sandbox if one is lost", { timeout: 300_000 }, async () => {
  const place = makeRemote();
  const config = { ...onRepository(place.url), ...verify(["sleep 8"], { where: "fresh" }) };
  const session = await agent.start(scriptedModel().says("Done."), { config });
  await loseSandboxes(session, "longhaul.beside", 1);
  expect(await session.result()).toMatchObject({ status: "completed", verified: "passed" });
  const filters = { label: [`longhaul.session=${session.id}`] };
  expect(await agent.docker.listContainers({ all: true, filters })).toEqual([]);
});

it("at a limit of cost in a round, keeps the files and says what it came to", async () => {
  const usage = { input: 1_000, output: 100, cached: 0, reasoning: 0 };
  const config = {
    ...verify([MENDED], { rounds: 3 }),
    price: { input: 1_000, cached: 1_000, output: 1_000 },
    limits: { maxCostUsd: 2 },
  };
  const script = scriptedModel()
    .says("Done.")
    .with({ usage })
    .calls("bash", { command: "echo kept > kept.txt" })
    .with({ usage })
    .says("It is not done.")
    .with({ usage });
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({ status: "max_steps", limit: "cost", verified: "failed" });
  expect(await rowOf(session.id)).toMatchObject({ status: "max_steps", verified: "failed" });
  const saved = await latestCheckpoint(agent.database.store.db, session.id);
  expect(unpackManifest(saved?.manifest ?? Buffer.alloc(0)).map(({ path }) => path)).toContain("kept.txt");
}, 120_000);

it("is verified anew after a reset, and what was seen before stays with its epoch", async () => {
  const script = scriptedModel().says("Done.").calls("bash", { command: "touch mended" }).says("Done again.");
  const session = await agent.start(script, { config: verify([MENDED]) });
  expect(await session.result()).toMatchObject({ verified: "failed" });
  await retry(agent, session.id, 1);
  const isPassed = async () => (await rowOf(session.id))?.verified === "passed";
  await eventually("its next look", isPassed, 100_000);
  expect(await looksOf(session.id)).toEqual([
    ["e1s1v0", "failed"],
    ["e2s2v0", "passed"],
  ]);
}, 120_000);

it("is delivered by a later order as what it was found to be, and verified again by `say`", async () => {
  const place = makeRemote(undefined, { end: (undo) => void ends.push(undo) });
  const forge = createFakeForge(CANARY, () =>
    gitIn(place.folder, "branch", "--format=%(refname:short)").split("\n"),
  );
  const server = await serveGit(place, CANARY, forge.handle, (undo) => void ends.push(undo));
  const git = onRepository(`${server.origin}/acme/app.git`, { push: "never", forge: "github" });
  const script = scriptedModel()
    .calls("bash", { command: "echo work > work.txt" })
    .says("Done.")
    .calls("bash", { command: "touch mended" })
    .says("Mended.");
  const session = await agent.start(script, { config: { ...git, ...verify([MENDED]) } });
  expect(await session.result()).toMatchObject({ verified: "failed" });
  const order = { push: true, pr: "draft" } as const;
  const code = async () =>
    deliverSession(clientServices(agent), await sessionRow(agent, session.id), order, quietOutput([]));
  expect(await code()).toBe(0);
  expect(forge.requests).toMatchObject([
    { body: expect.stringContaining(`\`${MENDED}\`: failed (exit code 1)`) },
  ]);
  expect(await rowOf(session.id)).toMatchObject({ status: "completed", verified: "failed" });
  const resumed = await session.resume("Mend it.", "mend");
  expect(await resumed.result()).toMatchObject({ result: "Mended.", verified: "passed" });
  expect(await code()).toBe(0);
  expect(forge.requests).toMatchObject([
    { number: 1, body: expect.stringContaining(`\`${MENDED}\`: passed`) },
  ]);
  expect((await looksOf(session.id)).map(([, outcome]) => outcome)).toEqual(["failed", "passed"]);
}, 180_000);
