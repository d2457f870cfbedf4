/** A client without the key of an encrypted session: what needs no text works, and nothing is sent in the clear. */
import { randomBytes } from "node:crypto";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import { expect, it } from "vitest";
import { deleteSession } from "../../client/sessions/delete-session.ts";
import { cancelSession } from "../../client/sessions/cancel-session.ts";
import { interruptSession } from "../../client/sessions/interrupt-session.ts";
import { readStatus } from "../../client/sessions/session-status.ts";
import { sendAnswer } from "../../client/sessions/send-answer.ts";
import { sendGuidance } from "../../client/sessions/send-guidance.ts";
import { requireSession } from "../../client/sessions/with-session.ts";
import { temporalClient } from "../../worker/connect/temporal-client.ts";
import { clientServices } from "../support/client-services.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { untilWaiting } from "../support/questions.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { textsIn } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(5);
const KEYS = `one:${randomBytes(32).toString("base64")}`;
const SAID = "SECRET-WORD";

it("reads its status, ends and deletes it, and refuses to send words", async () => {
  const script = scriptedModel().answers(call("ask_user", { question: "Which?" }));
  const session = await startKillableSession(database, script, {
    environment: { LONGHAUL_CODEC_KEYS: KEYS },
  });
  const { id } = session;
  const { connection, options } = session.place.client;
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
  const history = await session.handle.fetchHistory();
  expect(textsIn(JSON.parse(historyToJSON(history))).join("\n")).not.toContain(SAID);

  await cancelSession(services, await row());
  expect(await deleteSession(services, await row())).toEqual({
    ids: [id],
    histories: { deleted: 1, left: 0 },
  });
}, 120_000);
