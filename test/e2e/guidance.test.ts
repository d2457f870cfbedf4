import { describe, expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { untilCalls } from "../support/waits.ts";
import { timesAsked } from "../support/scripted-summaries.ts";

const agent = useAgent();

/** A session whose provider is away at its second step, which was to bring a message that came during the first. */
async function whileAway(lastWords: string): Promise<RunningSession> {
  const script = scriptedModel()
    .answers(call("bash", { command: "sleep 2" }))
    .fails(503, "We are down for an hour.", { headers: { "retry-after": "500" } })
    .says(lastWords);
  const session = await agent.start(script);
  await untilCalls(agent.database.store, session.id, "running");
  await session.handle.signal("guidance", { id: "one", text: "use tabs" });
  await session.until("llm:error");
  return session;
}

describe("a repeated step", () => {
  it("delivers its messages once, and those since then", { tags: ["invariant-6"] }, async () => {
    const session = await whileAway("Both are clear.");
    await session.handle.signal("interrupt", { id: "two", text: "try the other provider" });
    expect(await session.result()).toMatchObject({ status: "completed", result: "Both are clear." });
    expect(timesAsked(session.model, ["use tabs", "try the other provider"])).toEqual([1, 1]);
    await checkSession(agent, session);
  });

  it("delivers them after a cancel and a resume as well", { tags: ["invariant-6"] }, async () => {
    const session = await whileAway("All are clear.");
    await session.handle.signal("guidance", { id: "two", text: "no semicolons" });
    await session.handle.cancel();
    await expect(session.result()).rejects.toThrow();
    const again = await session.resume("in English", "three");
    expect(await again.result()).toMatchObject({ status: "completed", result: "All are clear." });
    expect(timesAsked(session.model, ["use tabs", "no semicolons", "in English"])).toEqual([1, 1, 1]);
    await checkSession(agent, session);
  });
});
