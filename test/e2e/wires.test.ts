import { WorkflowFailedError } from "@temporalio/client";
import { ApplicationFailure } from "@temporalio/common";
import { describe, expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { CANARY, useAgent } from "../support/agent-harness.ts";
import { call, scriptedModel, text, thought } from "../support/scripted-model.ts";
import { answersOf, callRows, resultTexts, wholeDatabase, wholeHistory } from "../support/stored.ts";

const agent = useAgent();

describe.each(["responses", "chat"] as const)("the main loop on the %s wire", (api) => {
  it("runs parallel calls and sends each result back under its call", async () => {
    const script = scriptedModel()
      .answers(
        text("Two at once."),
        call("write_file", { path: "one.txt", content: "the first file" }),
        call("bash", { command: "echo the second call" }),
      )
      .calls("read_file", { path: "one.txt" })
      .says("Both are done.");
    const session = await agent.start(script, { config: { api } });
    expect(await session.result()).toMatchObject({ status: "completed", steps: 3, result: "Both are done." });
    expect(session.model.requests.map((request) => request.api)).toEqual([api, api, api]);
    const items = session.model.requests[1]?.items ?? [];
    const calls = items.flatMap((item) => (item.type === "call" ? [item] : []));
    const results = items.flatMap((item) => (item.type === "result" ? [item] : []));
    expect(calls.map((item) => item.name)).toEqual(["write_file", "bash"]);
    expect(results.map((item) => item.callId)).toEqual(calls.map((item) => item.callId));
    expect(JSON.stringify(results[1])).toContain("the second call");
    const last = session.model.requests[2]?.items.at(-1);
    expect(JSON.stringify(last)).toContain("the first file");
    await checkSession(agent, session);
  });

  it("sends the request again after an answer that was cut in the middle, and keeps one answer [A19]", async () => {
    const script = scriptedModel()
      .answers(text("This half is never"), { type: "drop" })
      .says("This one came whole.");
    const session = await agent.start(script, { config: { api } });
    expect(await session.result()).toMatchObject({ status: "completed", result: "This one came whole." });
    expect(session.model.log).toHaveLength(2);
    const answers = await answersOf(agent.database.store, session.id);
    expect(answers).toHaveLength(1);
    expect(JSON.stringify(answers[0]?.content)).not.toContain("never");
    const responses = (await session.events()).filter((event) => event.type === "llm:response");
    expect(responses.map((event) => event.attempt)).toEqual([2]);
    await checkSession(agent, session);
  });
});

describe("reasoning", () => {
  it("is kept and sent back before the call that followed it", async () => {
    const script = scriptedModel()
      .answers(thought("The folder comes first."), call("bash", { command: "ls -a" }))
      .says("It is empty.");
    const session = await agent.start(script, { config: { model: "openai/o3", contextWindow: 200_000 } });
    expect((await session.result()).usage.reasoning).toBeGreaterThan(0);
    const items = session.model.requests[1]?.items ?? [];
    const place = items.findIndex((item) => item.type === "reasoning");
    expect(items[place]).toMatchObject({ type: "reasoning", encrypted: expect.any(String) });
    expect(items[place + 1]).toMatchObject({ type: "call", name: "bash" });
    expect(session.model.requests[1]?.raw).toMatchObject({ store: false });
    await checkSession(agent, session);
  });
});

describe("a provider that fails", () => {
  it("is asked again at the time it named, not earlier [A19] [R30]", async () => {
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

  it("is asked a third time after two server errors, one request each time [A19]", async () => {
    const script = scriptedModel().fails(500, "Oh dear.", { times: 2 }).says("Third time lucky.");
    const session = await agent.start(script);
    expect(await session.result()).toMatchObject({ status: "completed", steps: 1 });
    expect(session.model.log.map((served) => served.status)).toEqual([500, 500, 200]);
    expect(await answersOf(agent.database.store, session.id)).toHaveLength(1);
    await checkSession(agent, session);
  });

  it("ends the run at once when it refuses the key, naming the variable and never the key [A19] [R51]", async () => {
    const script = scriptedModel().fails(401, `Incorrect API key provided: ${CANARY}.`, {
      code: "invalid_api_key",
    });
    const session = await agent.start(script);
    const failure = await session.result().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(WorkflowFailedError);
    const { cause } = failure as WorkflowFailedError;
    expect(cause).toBeInstanceOf(ApplicationFailure);
    expect(cause).toMatchObject({ type: "ModelCredentials" });
    expect(cause?.message).toContain("OPENAI_API_KEY");
    expect(session.model.log).toHaveLength(1);
    const { status, error } = (
      await agent.database.store.pool.query("select status, error from sessions where id = $1", [session.id])
    ).rows[0];
    expect(status).toBe("failed");
    expect(error).toMatchObject({ type: "ModelCredentials" });
    const history = await wholeHistory(session.handle);
    expect(history).toContain("OPENAI_API_KEY");
    const texts = [String(cause?.stack), JSON.stringify(cause), history];
    for (const place of [...texts, await wholeDatabase(agent.database.store)])
      expect(place).not.toContain(CANARY);
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
