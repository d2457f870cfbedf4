/** A message resumes a session that has ended. */
import { expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { transcriptOf, billsOf } from "../support/stored.ts";
import { useAgent } from "../support/agent-harness.ts";

const agent = useAgent();

it("an ended session is resumed: same id, next step, workspace restored", async () => {
  const script = scriptedModel()
    .calls("write_file", { path: "kept.txt", content: "still here" })
    .says("First part done.")
    .calls("bash", { command: "cat kept.txt" })
    .says("Second part done.");
  const session = await agent.start(script);
  expect((await session.result()).steps).toBe(2);
  const again = await session.resume("now read it", "more");
  expect(await again.result()).toMatchObject({
    status: "completed",
    steps: 4,
    result: "Second part done.",
  });
  const rows = await transcriptOf(agent.database.store, session.id);
  expect(JSON.stringify(rows.filter((row) => row.step === 3 && row.role === "tool"))).toContain("still here");
  const calls = await billsOf(agent.database.store, session.id);
  expect(calls.map((row) => row.step)).toEqual([1, 2, 3, 4]);
  await checkSession(agent, session);
});
