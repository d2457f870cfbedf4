/** Sessions that are held to the operator's budgets. */
import { expect, it } from "vitest";
import { operatorPolicySchema } from "../../activities/config/operator-policy.ts";
import { startAgent } from "../support/agent-harness.ts";
import { perFile } from "../support/per-file.ts";
import { scriptedModel } from "../support/scripted-model.ts";

/** A request of some 3,000 tokens and an answer of at most 4,000 cost at most 7 cents. */
const price = { input: 10, cached: 1, output: 10 };
const policy = operatorPolicySchema.parse({
  onBudget: "stop",
  budgets: [
    { per: "tenant", of: "acme", period: "month", usd: 0.1 },
    { per: "tenant", of: "spent", period: "day", usd: 0.01 },
  ],
});
const agent = perFile(() => startAgent({ policy }));
const settings = (tenant: string) => ({ tenant, price });

it("a session ends at a budget with its files and its reason, and another tenant's goes on", async () => {
  const work = () =>
    Array.from({ length: 6 }).reduce<ReturnType<typeof scriptedModel>>(
      (script, _, index) => script.calls("bash", { command: `echo ${index}` }),
      scriptedModel(),
    );
  const session = await agent.start(work().says("Done."), { config: settings("acme") });
  expect(await session.result()).toMatchObject({ status: "max_steps", limit: "budget" });
  const ended = await session.until("session:ended");
  expect(ended.data.limit).toBe("budget");
  expect(ended.data.reason).toMatch(
    /A budget of the operator's is used up\. The budget for tenant acme, month is \$0\.10; .* are used or reserved, and the next request may cost .* It begins anew on \d{4}-\d\d-01\./,
  );
  expect(session.model.requests.length).toBeGreaterThan(0);
  expect(session.model.requests.length).toBeLessThan(7);
  const other = await agent.start(work().says("Done."), { config: settings("free") });
  expect(await other.result()).toMatchObject({ status: "completed" });
});

it("a session for which nothing is left is refused before a model is asked", async () => {
  const session = await agent.start(scriptedModel().says("Never."), { config: settings("spent") });
  await expect(session.result()).rejects.toMatchObject({
    cause: { type: "PolicyRefused", message: expect.stringContaining("tenant spent, day") as string },
  });
  expect(session.model.requests).toEqual([]);
});

it("a model without a price is refused under a budget that counts money", async () => {
  const config = { tenant: "acme", price: undefined };
  const session = await agent.start(scriptedModel().says("Never."), { config });
  await expect(session.result()).rejects.toMatchObject({
    cause: { type: "PolicyRefused", message: expect.stringContaining("is not known") as string },
  });
});
