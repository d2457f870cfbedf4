/** A session whose history in Temporal is encrypted: it shows nothing, keys are rotated, a missing one makes it wait. */
import { randomBytes } from "node:crypto";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import { eq } from "drizzle-orm";
import { expect, it, onTestFinished } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { createSchedule } from "../../activities/store/batches.ts";
import { sessions } from "../../activities/store/schema/index.ts";
import { findResetPoint } from "../../client/sessions/retry-session.ts";
import { serveCodec } from "../../client/serve/codec-server.ts";
import { parseCodecKeys, createCodec } from "../../temporal/codec.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { untilWaiting } from "../support/questions.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts, transcriptOf, textsIn } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(5);

const SECRET = "SECRET-WORD";
const [ONE, TWO] = ["one", "two"].map((id) => `${id}:${randomBytes(32).toString("base64")}`) as [
  string,
  string,
];
const withKeys = (keys: string) => ({ LONGHAUL_CODEC_KEYS: keys });

it("shows nothing of it, waits for a missing key, continues with a new one, can be answered", async () => {
  const script = scriptedModel()
    .calls("bash", { command: `echo ${SECRET}` })
    .answers(call("ask_user", { question: `Is it ${SECRET}?` }))
    .says(`It is ${SECRET}.`);
  const session = await startKillableSession(database, script, {
    task: `Find ${SECRET}.`,
    // The new key is known everywhere before it encrypts.
    environment: withKeys(`${ONE},${TWO}`),
  });
  await session.handle.signal("guidance", { text: `Hint: ${SECRET}` });
  const first = await session.startWorker();
  await untilWaiting(database.store, session);
  await first.kill();

  const lacking = await session.startWorker(withKeys(TWO));
  await session.services.client.workflowService.signalWorkflowExecution({
    namespace: "default",
    workflowExecution: { workflowId: session.id },
    signalName: "answer",
    input: { payloads: await encodedByServer({ text: `Yes, ${SECRET}.` }) },
  });
  await eventually("the worker names the key", () => lacking.log().includes("CodecKeyMissing"), 10_000);
  expect(lacking.log()).toContain(String.raw`encrypted with the key \"one\"`);
  expect((await session.handle.describe()).status.name).toBe("RUNNING");
  await lacking.kill();

  await session.startWorker(withKeys(`${TWO},${ONE}`));
  expect(await session.handle.result()).toMatchObject({ status: "completed", result: `It is ${SECRET}.` });
  const { runId } = await session.handle.describe();
  // `retry` reads the payloads.
  expect(await findResetPoint(session.services.client, session.id, [runId], 2)).toMatchObject({
    kind: "found",
    point: { runId, step: 2 },
  });
  expect(await resultTexts(database.store, session.id)).toEqual([
    expect.stringContaining(SECRET),
    expect.stringContaining(`Yes, ${SECRET}.`),
  ]);
  expect(JSON.stringify(await transcriptOf(database.store, session.id))).toContain(`Hint: ${SECRET}`);

  const texts = textsIn(JSON.parse(historyToJSON(await session.handle.fetchHistory())));
  expect(texts.length).toBeGreaterThan(100);
  for (const text of texts) expect(text).not.toContain(SECRET);
  expect(texts).toEqual(expect.arrayContaining(["one", "two"]));
  const { memo, searchAttributes } = await session.handle.describe();
  expect(memo).toMatchObject({ task: expect.stringContaining(SECRET) as string });
  expect(JSON.stringify(searchAttributes)).not.toContain(SECRET);
}, 300_000);

it("starts a schedule's sessions, whose ids Temporal makes of the schedule's", async () => {
  const session = await startKillableSession(database, scriptedModel().says("By hand.").says("By itself."), {
    environment: withKeys(ONE),
  });
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ result: "By hand." });
  const { client } = session.services;
  const name = `${session.id}-nightly`;
  const task = `Find ${SECRET}.`;
  const { db } = database.store;
  const [row] = await db
    .select({ config: sessions.config })
    .from(sessions)
    .where(eq(sessions.id, session.id));
  await createSchedule(db, { name, task, config: row?.config as RunConfig, owner: undefined });
  const schedule = await client.schedule.create({
    scheduleId: name,
    spec: {},
    action: {
      type: "startWorkflow",
      workflowType: WORKFLOW_TYPE,
      workflowId: name,
      taskQueue: session.id,
      args: [{ schedule: name }],
      memo: { task },
    },
  });
  onTestFinished(() => schedule.delete());
  await schedule.trigger();
  const started = await eventually(
    "the schedule starts a run",
    async () => (await schedule.describe()).info.recentActions[0]?.action.workflow.workflowId,
    20_000,
  );
  expect(started).toMatch(/-nightly-\d{4}-\d\d-\d\dT[\d:]+Z$/);
  const run = client.workflow.getHandle(started);
  onTestFinished(() => void run.terminate().catch(() => undefined));
  expect(await run.result()).toMatchObject({ status: "completed", result: "By itself." });
  expect((await run.describe()).memo).toMatchObject({ task });
}, 120_000);

/** A person's input in the Web UI, as its codec server returns it. */
async function encodedByServer(value: unknown) {
  const codec = createCodec(parseCodecKeys(ONE));
  const server = await serveCodec({ codec, port: 0, token: "t", origins: new Set() });
  onTestFinished(() => server.close());
  const payload = { metadata: { encoding: btoa("json/plain") }, data: btoa(JSON.stringify(value)) };
  const response = await fetch(`${server.url}/t/encode`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ payloads: [payload] }),
  });
  const { payloads } = (await response.json()) as {
    payloads: { metadata: Record<string, string>; data: string }[];
  };
  const bytes = (text: string) => Buffer.from(text, "base64");
  return payloads.map(({ metadata, data }) => ({
    metadata: Object.fromEntries(Object.entries(metadata).map(([name, text]) => [name, bytes(text)])),
    data: bytes(data),
  }));
}
