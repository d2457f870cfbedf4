/** `LONGHAUL_HISTORY=ids`: Temporal stores none of a session's text, without any key. */
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import { expect, it, onTestFinished, vi } from "vitest";
import { startAgent } from "../support/agent-harness.ts";
import { sessionRow, say } from "../support/client-services.ts";
import { perFile } from "../support/per-file.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts, transcriptOf, textsIn } from "../support/stored.ts";

const SECRET = "SECRET-WORD";
const agent = perFile(() => startAgent({ idsOnly: true }));

it("stores only ids and codes of commands, messages, questions, answers and failures", async () => {
  vi.stubEnv("LONGHAUL_HISTORY", "ids");
  onTestFinished(() => void vi.unstubAllEnvs());
  const script = scriptedModel()
    .calls("bash", { command: `echo ${SECRET}` })
    .answers(call("ask_user", { question: `Is it ${SECRET}?` }))
    .fails(400, `${SECRET} is no request.`);
  const session = await agent.start(script, { task: `Find ${SECRET}.` });
  await session.until("question:asked");
  // It withdraws the question.
  await say(agent, session.id, { id: "said", text: `It is ${SECRET}.` });
  await expect(session.handle.result()).rejects.toThrow();

  const { store } = agent.database;
  expect((await resultTexts(store, session.id))[0]).toContain(SECRET);
  expect(JSON.stringify(await transcriptOf(store, session.id))).toContain(`It is ${SECRET}.`);
  expect((await sessionRow(agent, session.id)).error).toEqual({
    type: "ModelRejected",
    message: "ModelRejected: see the worker's log.",
  });
  const texts = textsIn(JSON.parse(historyToJSON(await session.handle.fetchHistory())));
  expect(texts.length).toBeGreaterThan(100);
  for (const text of texts) expect(text).not.toContain(SECRET);
  expect(texts).toContain('"step 1 · bash"');
}, 120_000);
