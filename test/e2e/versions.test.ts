/** Workers with deployment versions in Temporal: what holds on any server. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { SessionStatusDocument } from "../../client/sessions/status-document.ts";
import { cacheFolder, temporalBinary } from "../../client/setup/temporal-binary.ts";
import { versionsFinding } from "../../client/setup/temporal-server.ts";
import { startClient } from "../support/program.ts";
import { eventually } from "../support/eventually.ts";
import { type KillableSession, startKillableSession } from "../support/killable-session.ts";
import { answerQuestionUpdate, statusQuery } from "../../workflows/messages.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { newerTemporal, startOwnTemporal } from "../support/own-temporal.ts";
import { useDatabase } from "../support/test-database.ts";
import { deploymentsOf, makeCurrent } from "../support/versions.ts";

const database = useDatabase(10);

const pinnedTo = (deployment: string, build: string) => ({
  LONGHAUL_DEPLOYMENT: deployment,
  LONGHAUL_BUILD_ID: build,
  LONGHAUL_VERSIONING: "pinned",
});

/** A person's `status`, which exits with 0 whatever the session waits for. */
async function statusOf(id: string) {
  const ask = async (...more: string[]) => {
    const client = startClient(["status", id, ...more], {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: inject("temporalAddress"),
      LONGHAUL_NO_SETUP: "1",
    });
    expect((await client.ended).code, client.err()).toBe(0);
    return client.out();
  };
  const document = JSON.parse(await ask("--json")) as SessionStatusDocument;
  return { document, shown: await ask() };
}

it(
  "a pinned session without a worker of its version says so, and doctor's command moves it",
  { tags: ["V3"] },
  async () => {
    const deployment = `fleet-${randomBytes(3).toString("hex")}`;
    const script = scriptedModel().answers(text("Half"), { type: "hang" }).says("Done.");
    const session = await startKillableSession(database, script);
    const { client } = session.services;
    const first = await session.startWorker(pinnedTo(deployment, "v1"));
    await makeCurrent(client, deployment, "v1");
    await eventually("its step is under way", () => session.model.log.length === 1, 60_000);
    await session.startWorker(pinnedTo(deployment, "v2"));
    await makeCurrent(client, deployment, "v2");
    await first.kill();

    const { document, shown } = await statusOf(session.id);
    expect(document).toMatchObject({ status: "active", live: false, build: "v1" });
    expect(shown).toContain("waits for a worker of build v1");
    const address = inject("temporalAddress");
    const finding = await eventually("v1 drains", async () => {
      const found = await versionsFinding(address, deployment);
      return found.fix === undefined ? undefined : found;
    });
    expect(finding).toMatchObject({
      ok: true,
      warning: true,
      found: `${deployment}: current v2, draining v1`,
    });

    // Run literally, with the server's own program.
    const command = /temporal (workflow update-options .*)$/.exec(finding.fix ?? "")?.[1] ?? "";
    const program = await temporalBinary({ cache: cacheFolder(), say: () => undefined });
    const words = command.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", "")) ?? [];
    const query = words[words.indexOf("--query") + 1] ?? "";
    await eventually(
      "it is listed as pinned",
      async () => {
        for await (const { workflowId } of client.workflow.list({ query }))
          if (workflowId === session.id) return true;
        return false;
      },
      60_000,
    );
    execFileSync(program, [...words, "--yes", "--address", address], { stdio: "pipe" });
    expect(await session.handle.result()).toMatchObject({ status: "completed" });
  },
);

it("is off by default, and leaves no deployment on the server", { tags: ["V4"] }, async () => {
  const before = await startKillableSession(database, scriptedModel().says("Done."));
  const { client } = before.services;
  const known = new Set(await deploymentsOf(client));
  const build = `plain-${randomBytes(3).toString("hex")}`;
  await before.startWorker({ LONGHAUL_BUILD_ID: build });
  expect(await before.handle.result()).toMatchObject({ status: "completed" });
  const fresh = (await deploymentsOf(client)).filter(
    (name) => !known.has(name) && !name.startsWith("fleet-"),
  );
  expect(fresh).toEqual([]);
  expect((await statusOf(before.id)).document.build).toBeNull();
});

const newer = await newerTemporal();

async function newerAddress(): Promise<string> {
  const temporal = await startOwnTemporal([], newer);
  onTestFinished(() => temporal.close());
  return temporal.address;
}

/** Starts the second version's worker, and waits until the run is on it. */
async function moveToV2(session: KillableSession, deployment: string) {
  const { client } = session.services;
  await session.startWorker(pinnedTo(deployment, "v2"));
  await makeCurrent(client, deployment, "v2");
  const newest = client.workflow.getHandle(session.id);
  await eventually(
    "it has gone over",
    async () => {
      await newest.signal("nudge");
      const { raw } = await newest.describe();
      return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId === "v2";
    },
    60_000,
  );
}

describe.skipIf(newer === undefined)("with Temporal's server 1.32", () => {
  it(
    "a session that waits for a person moves with its question open, and is answered there",
    { tags: ["V2"] },
    async () => {
      const temporalAddress = await newerAddress();
      const ask = { question: "Which port?", default: "80", timeout_seconds: 3_600 };
      const script = scriptedModel()
        .answers(call("bash", { command: "echo once >> n.txt; cat n.txt" }), call("ask_user", ask))
        .calls("bash", { command: "cat n.txt" })
        .says("Done.");
      const session = await startKillableSession(database, script, { temporalAddress });
      const { client } = session.services;
      const deployment = `fleet-${randomBytes(3).toString("hex")}`;
      await session.startWorker(pinnedTo(deployment, "v1"));
      await makeCurrent(client, deployment, "v1");
      const handle = client.workflow.getHandle(session.id);
      await eventually(
        "it waits",
        async () => (await handle.query(statusQuery)).status === "waiting",
        60_000,
      );
      const questions = () =>
        database.store.pool.query<{ status: string; left: number; id: string }>(
          "select id, status, extract(epoch from expires_at - now())::float8 as left from questions where session_id = $1",
          [session.id],
        );
      const before = (await questions()).rows;
      await moveToV2(session, deployment);
      const asks = async () => (await handle.query(statusQuery)).questions.length === 1;
      await eventually("it waits there", asks, 60_000);
      const { events: history } = await handle.fetchHistory();
      const timer = history?.map((event) => event.timerStartedEventAttributes).find(Boolean);
      expect(Number(timer?.startToFireTimeout?.seconds)).toBeLessThan(3_600);
      expect((await questions()).rows).toMatchObject([{ id: before[0]?.id, status: "open" }]);
      await handle.executeUpdate(answerQuestionUpdate, { args: [{ text: "8080" }] });
      expect(await handle.result()).toMatchObject({ status: "completed" });
      expect(await resultTexts(database.store, session.id)).toEqual([
        "once",
        expect.stringContaining("8080"),
        "once",
      ]);
      expect(session.model.log).toHaveLength(3);
      const types = (await session.events()).map(({ type }) => type);
      expect(types.filter((type) => type === "question:asked")).toHaveLength(1);
      expect(types.filter((type) => type === "question:answered")).toHaveLength(1);
      await checkSession(session.services, session);
    },
  );

  it("a wait moves with the end that was fixed when it began, and is announced once", async () => {
    const script = scriptedModel()
      .answers(call("wait", { reason: "the deploy", seconds: 40 }))
      .says("Done.");
    const session = await startKillableSession(database, script, { temporalAddress: await newerAddress() });
    const { client } = session.services;
    const deployment = `fleet-${randomBytes(3).toString("hex")}`;
    await session.startWorker(pinnedTo(deployment, "v1"));
    await makeCurrent(client, deployment, "v1");
    const started = await session.until("wait:started");
    await moveToV2(session, deployment);
    const handle = client.workflow.getHandle(session.id);
    const { events: history } = await handle.fetchHistory();
    expect(
      history?.find((event) => event.workflowExecutionStartedEventAttributes?.continuedExecutionRunId),
    ).toBeDefined();
    expect(await handle.result()).toMatchObject({ status: "completed", result: "Done." });
    const ended = await session.until("wait:ended");
    expect(ended.data).toMatchObject({ how: "time" });
    const lastedMs = Date.parse(String(ended.at)) - Date.parse(String(started.at));
    expect(lastedMs).toBeGreaterThan(38_000);
    expect(ended.data.ms).toBeGreaterThanOrEqual(40_000);
    const types = (await session.events()).map(({ type }) => type);
    for (const type of ["wait:started", "wait:ended"])
      expect(
        types.filter((other) => other === type),
        type,
      ).toHaveLength(1);
    expect(await resultTexts(database.store, session.id)).toEqual([
      expect.stringMatching(/^Waited \d+ s: the time is over\.$/),
    ]);
    await checkSession(session.services, session);
  });
});
