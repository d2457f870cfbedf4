/** A client or a worker without the key of an encrypted session. */
import { randomBytes } from "node:crypto";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import { expect, it } from "vitest";
import { statusText } from "../../client/commands/status.ts";
import { deleteSession } from "../../client/commands/delete.ts";
import { cancelSession, interruptSession } from "../../client/sessions/stop-session.ts";
import { forkSession } from "../../client/sessions/fork-session.ts";
import { retrySession } from "../../client/sessions/retry-session.ts";
import { readStatus } from "../../client/sessions/session-status.ts";
import { sendAnswer } from "../../client/sessions/send-answer.ts";
import { sentNotes, sendGuidance } from "../../client/sessions/guidance.ts";
import { requireSession } from "../../client/sessions/with-session.ts";
import { temporalClient } from "../../temporal/temporal-client.ts";
import { clientServices } from "../support/client-services.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { untilWaiting } from "../support/questions.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { textsIn } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(5);
const KEYS = `one:${randomBytes(32).toString("base64")}`;
const SAID = "SECRET-WORD";

it("a client reads its status, ends and deletes it, and refuses to send words", async () => {
  const script = scriptedModel().answers(call("ask_user", { question: "Which?" }));
  const session = await startKillableSession(database, script, {
    environment: { LONGHAUL_CODEC_KEYS: KEYS },
  });
  const { id } = session;
  const { connection, options } = session.services.client;
  const client = temporalClient({ connection, namespace: options.namespace });
  const services = clientServices({ client, taskQueue: id, database });
  const row = () => requireSession({ store: database.store }, id);
  await session.startWorker();
  await untilWaiting(database.store, session);

  expect(await readStatus(services, await row())).toMatchObject({ workflowStatus: "RUNNING", live: true });
  const refusal = { exitCode: 4, message: expect.stringContaining("nothing was sent") as string };
  const message = { id: undefined, text: SAID, attachments: [] };
  await expect(sendGuidance(services, await row(), message)).rejects.toMatchObject(refusal);
  await expect(sendAnswer(services, id, { text: SAID })).rejects.toMatchObject(refusal);
  await expect(interruptSession(services, await row(), SAID)).rejects.toMatchObject(refusal);
  const retry = { fromStep: 1, dropMessages: false };
  await expect(retrySession(services, await row(), retry)).rejects.toMatchObject(refusal);
  const order = { fromStep: 1, message: SAID, id: undefined };
  await expect(forkSession(services, await row(), order)).rejects.toMatchObject(refusal);
  const history = await session.handle.fetchHistory();
  expect(textsIn(JSON.parse(historyToJSON(history))).join("\n")).not.toContain(SAID);

  await cancelSession(services, await row());
  expect(await deleteSession(services, await row())).toEqual({
    ids: [id],
    histories: { deleted: 1, left: 0 },
  });
}, 120_000);

it("a worker cannot continue it, and clients say why, until a worker has the key", async () => {
  const session = await startKillableSession(
    database,
    scriptedModel().answers(text("One.")).answers(text("Two.")),
    {
      environment: { LONGHAUL_CODEC_KEYS: KEYS },
    },
  );
  const { id } = session;
  const services = clientServices({ client: session.services.client, taskQueue: id, database });
  const row = () => requireSession({ store: database.store }, id);
  const keyless = await session.startWorker({ LONGHAUL_CODEC_KEYS: "" });
  const why = /the workflow, attempt \d+: CodecKeyMissing: .*"one"/;
  const status = await eventually(
    "the status says why",
    async () => {
      const document = await readStatus(services, await row());
      return document.trouble === null ? undefined : document;
    },
    30_000,
  );
  expect(status.trouble).toMatch(why);
  const shown = statusText(status, undefined, (_look, plain) => plain, new Date());
  expect(shown).toContain("no worker can continue it: see retries");
  const sent = await sendGuidance(services, await row(), { id: "m", text: SAID, attachments: [] });
  expect(sent.acknowledged).toBe(false);
  expect((await sentNotes(services, id, sent)).join("\n")).toMatch(why);
  await keyless.kill();
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
  expect(await readStatus(services, await row())).toMatchObject({ trouble: null, queue: [] });
}, 120_000);
