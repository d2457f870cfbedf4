/** Budgets that are used up, or changed, while sessions run. */
import { expect, it } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { bySession } from "../support/by-session.ts";
import { sessionRow } from "../support/client-services.ts";
import { delegating } from "../support/delegating.ts";
import { underPolicy } from "../support/operator-policy.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();
const price = { input: 10, cached: 1, output: 10 };
const monthly = (of: string, usd: number) => ({
  onBudget: "stop",
  budgets: [{ per: "tenant", of, period: "month", usd }],
});

it("a budget that is lowered holds the next request, and one that is raised lets `say` go on", async () => {
  underPolicy(agent, monthly("changing", 100));
  const script = scriptedModel()
    .replies(() => {
      underPolicy(agent, monthly("changing", 0.001));
      return Promise.resolve({ parts: [call("bash", { command: "echo one" })] });
    })
    .says("It goes on.");
  const session = await agent.start(script, { config: { tenant: "changing", price } });
  expect(await session.result()).toMatchObject({ status: "max_steps", limit: "budget" });
  expect(session.model.requests).toHaveLength(1);

  // Nothing is left yet: the message is kept, and nothing is asked.
  const still = await session.resume("Go on.", "m1");
  expect(await still.result()).toMatchObject({ status: "max_steps", limit: "budget" });
  expect(session.model.requests).toHaveLength(1);

  underPolicy(agent, monthly("changing", 100));
  const again = await session.resume("Now.", "m2");
  expect(await again.result()).toMatchObject({ status: "completed" });
  expect(JSON.stringify(session.model.requests.at(-1))).toContain("Go on.");
});

it("a delegate that no budget has room for is a result, and its session ends at the budget", async () => {
  underPolicy(agent, monthly("parents", 100));
  const answer = bySession({ "": [[call("delegate", { task: "Spend." })], [text("Never said.")]] });
  const session = await agent.start(
    (request) => {
      underPolicy(agent, monthly("parents", 0.001));
      return answer(request);
    },
    { config: { ...delegating(), tenant: "parents", price } },
  );
  expect(await session.result()).toMatchObject({ status: "max_steps", limit: "budget" });
  expect(await sessionRow(agent, `${session.id}.s1c0`)).toMatchObject({ status: "failed" });
  expect((await resultTexts(agent.database.store, session.id))[0]).toContain("tenant parents, month");
  expect(session.model.requests).toHaveLength(1);
});
