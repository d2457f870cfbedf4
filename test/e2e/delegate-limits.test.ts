/** What a session and its delegates may cost together. */
import { expect, it } from "vitest";
import { setMaxCost } from "../../activities/store/session-settings.ts";
import { useAgent } from "../support/agent-harness.ts";
import { bySession } from "../support/by-session.ts";
import { sessionRow, say } from "../support/client-services.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { delegating } from "../support/delegating.ts";

const agent = useAgent();

const delegateCall = (task: string) => call("delegate", { task });

it("a delegate ends with its parent at the limit of what both may cost", { tags: ["D8"] }, async () => {
  const price = { input: 100, cached: 100, output: 100 };
  const session = await agent.start(
    bySession({
      "": [[delegateCall("Spend.")], [text("It was too dear.")]],
      ".s1c0": [[call("bash", { command: "echo one" })], [text("It stands so.")]],
    }),
    { config: { ...delegating({}, { maxCostUsd: 0.35 }), price } },
  );
  expect(await session.result()).toMatchObject({ status: "max_steps", limit: "cost" });
  expect(await sessionRow(agent, `${session.id}.s1c0`)).toMatchObject({
    status: "max_steps",
    error: { type: "CostLimit" },
  });
  expect((await resultTexts(agent.database.store, session.id))[0]).toContain("stopped at the limit of cost");
});

it("a delegate has the limit that its parent was raised to: in its next step, and resumed", async () => {
  const { store } = agent.database;
  const usage = { input: 1_000, output: 100, cached: 0, reasoning: 0 };
  let id = "";
  const raise = (usd: number) => setMaxCost(store.db, id, usd);
  const session = await agent.start(
    scriptedModel()
      .calls("delegate", { task: "Spend." })
      .with({ usage })
      // The delegate's first step crosses the limit of $2 in the moment in which its parent's is raised.
      .replies(async () => {
        await raise(4);
        return { parts: [call("bash", { command: "true" })], usage };
      })
      .says("Spent.")
      .with({ usage })
      // The parent's last answer: its own run learns of more by the answer to its question.
      .says("That is all.")
      .with({ usage })
      .says("Went on."),
    {
      config: {
        ...delegating({}, { maxCostUsd: 2 }),
        price: { input: 1_000, cached: 1_000, output: 1_000 },
      },
      named: (given) => (id = given),
    },
  );
  expect(await session.result()).toMatchObject({ status: "max_steps", result: "That is all." });
  const child = `${id}.s1c0`;
  expect(await sessionRow(agent, child)).toMatchObject({ status: "completed", result: "Spent." });
  await raise(10);
  await say(agent, child, { id: "m1", text: "Go on." });
  expect(await agent.client.workflow.getHandle(child).result()).toMatchObject({
    status: "completed",
    result: "Went on.",
  });
});
