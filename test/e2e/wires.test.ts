import { describe, expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { useAgent } from "../support/agent-harness.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { answersOf, callRows, resultTexts } from "../support/stored.ts";

const agent = useAgent();

describe("a provider that fails", () => {
  it("is asked again at the time it named, not earlier", { tags: ["A19", "R30"] }, async () => {
    const script = scriptedModel()
      .fails(429, "Slow down.", { headers: { "retry-after": "3" } })
      .says("Now it works.");
    const session = await agent.start(script);
    expect((await session.result()).status).toBe("completed");
    const [first, second, ...more] = session.model.log;
    expect(more).toEqual([]);
    expect((second?.receivedAt ?? 0) - (first?.receivedAt ?? 0)).toBeGreaterThanOrEqual(2_900);
    const error = await session.until("llm:error");
    expect(error.data).toMatchObject({ class: "rate-limit", retryInMs: 3_000, final: false });
    await checkSession(agent, session);
  });

  it("is asked a third time after two server errors, one request each time", { tags: ["A19"] }, async () => {
    const script = scriptedModel().fails(500, "Oh dear.", { times: 2 }).says("Third time lucky.");
    const session = await agent.start(script);
    expect(await session.result()).toMatchObject({ status: "completed", steps: 1 });
    expect(session.model.log.map((served) => served.status)).toEqual([500, 500, 200]);
    expect(await answersOf(agent.database.store, session.id)).toHaveLength(1);
    await checkSession(agent, session);
  });

  it("leaves the finished steps and their files to the resumed session", async () => {
    const script = scriptedModel()
      .calls("write_file", { path: "kept.txt", content: "kept" })
      .fails(403, "This project is archived.")
      .calls("bash", { command: "cat kept.txt" })
      .says("It went on.");
    const session = await agent.start(script);
    await expect(session.result()).rejects.toThrow();
    const again = await session.resume("The key is right now.", "again");
    expect(await again.result()).toMatchObject({ status: "completed", result: "It went on." });
    expect((await resultTexts(agent.database.store, session.id)).at(-1)).toBe("kept");
    expect(await callRows(agent.database.store, session.id, "completed")).toHaveLength(2);
    await checkSession(agent, session);
  });
});
