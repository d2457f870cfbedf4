/** A session with a JSON schema: its last answer is checked, and gets one more try. */
import { expect, it } from "vitest";
import { findSessionRow } from "../../activities/store/reading.ts";
import { useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";

const agent = useAgent();
const outputSchema = {
  type: "object",
  properties: { files: { type: "integer" } },
  required: ["files"],
};

it("accepts a valid answer after one more try, and ends after two invalid ones", async () => {
  const script = scriptedModel()
    .answers(call("bash", { command: "echo one > a.txt" }))
    .says("There is one file.")
    .answers(call("bash", { command: "ls" }))
    .says('```json\n{"files": 1}\n```')
    .says("Two files.")
    .says('{"files": "two"}');
  const session = await agent.start(script, { config: { outputSchema } });
  expect(await session.result()).toMatchObject({ status: "completed", result: '{"files":1}' });
  const ended = await session.until("session:ended");
  expect(ended.data).toMatchObject({ text: '{"files":1}', output: { files: 1 } });
  const [first, , again] = session.model.requests;
  expect(first?.system).toContain("matches the JSON Schema below");
  expect(JSON.stringify(first?.items)).not.toContain("not what was asked for");
  expect(JSON.stringify(again?.items)).toContain(
    "Your last answer is not what was asked for: it is not JSON",
  );

  await session.resume("Count again.", "again");
  const failed = await session.until("session:ended", ({ data }) => data.status === "failed");
  expect(failed.data.reason).toMatch(/^OutputMismatch: .*files must be integer.*say what to do/);
  expect(failed.data.output).toBeUndefined();
  expect((await findSessionRow(agent.database.store.db, session.id))?.error).toMatchObject({
    type: "OutputMismatch",
  });
  await checkSession(agent, session);
});
