import { describe, expect, it } from "vitest";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import { ModelError } from "../../activities/model/model.ts";
import { ask, modelRequest, play } from "../support/model-request.ts";
import { scriptedModel, startScriptedModel, text } from "../support/scripted-model.ts";

async function failure(asking: Promise<unknown>): Promise<ModelError> {
  const error = await asking.then(
    () => new Error("it answered"),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ModelError);
  return error as ModelError;
}

/** A test shortens only the deadline that it is about: on a busy machine another one could pass before it. */
const patient = { connectMs: 20_000, firstTokenMs: 20_000, silenceMs: 20_000, answerMs: 60_000 };

describe.each(["responses", "chat"] as const)("failures on the %s wire", (api) => {
  it.each([
    [400, "rejected"],
    [401, "credentials"],
    [403, "credentials"],
    [404, "not-found"],
    [408, "unavailable"],
    [409, "unavailable"],
    [413, "overflow"],
    [422, "rejected"],
    [429, "rate-limit"],
    [500, "unavailable"],
    [502, "unavailable"],
    [503, "unavailable"],
    [529, "unavailable"],
  ])("%i is %s, asked once", { tags: ["R31", "A19"] }, async (status, kind) => {
    const { baseUrl, log } = await play(scriptedModel().fails(status, `it is a ${status}`));
    const error = await failure(ask(baseUrl, { api }));
    expect(error).toMatchObject({ class: kind, status });
    expect(error.message).toContain(`it is a ${status}`);
    expect(log).toHaveLength(1);
  });

  it.each([
    ["context_length_exceeded", "Your input exceeds the context window of this model.", "overflow"],
    ["rate_limit_exceeded", "Rate limit reached for o3", "rate-limit"],
    ["server_error", "The server had an error", "unavailable"],
    ["insufficient_quota", "You exceeded your current quota", "quota"],
  ])("reads an error event within a 200 stream: %s", { tags: ["R40"] }, async (code, message, kind) => {
    const { baseUrl } = await play(
      scriptedModel()
        .answers({ type: "error", code, message })
        .answers(text("Let me"), { type: "error", code, message }),
    );
    expect((await failure(ask(baseUrl, { api }))).class).toBe(kind);
    const late = await failure(ask(baseUrl, { api }));
    expect(late.class).toBe(kind);
    expect(late.message).toContain(message);
  });

  it("calls garbage in the stream malformed", async () => {
    const { baseUrl } = await play(
      scriptedModel().answers({ type: "garbage", text: "data: <html>oops\n\n" }),
    );
    expect((await failure(ask(baseUrl, { api }))).class).toBe("malformed");
  });

  it("hangs up on a provider whose answer it cannot read, so that nothing more is billed", async () => {
    const garbage = { type: "garbage", text: "data: <html>oops\n\n" } as const;
    const { baseUrl, aborts } = await play(
      scriptedModel().answers(text("Let me"), garbage, { type: "hang" }),
    );
    expect((await failure(ask(baseUrl, { api }))).class).toBe("malformed");
    await expect.poll(() => aborts.length).toBe(1);
  });

  it.each([
    ["cut before the headers", scriptedModel().answers().with({ beforeHeaders: "drop" })],
    ["cut in the middle", scriptedModel().answers(text("Let me"), { type: "drop" })],
    ["ended without its last event", scriptedModel().answers(text("Let me"), { type: "end" })],
  ])("calls a connection that is %s unavailable", { tags: ["R31"] }, async (_, script) => {
    const { baseUrl } = await play(script);
    expect((await failure(ask(baseUrl, { api }))).class).toBe("unavailable");
  });

  it.each([
    // The server is on this machine: it may read for as long as a first token may take.
    ["headers", scriptedModel().answers().with({ beforeHeaders: "hang" }), "firstToken"],
    ["a first token", scriptedModel().answers({ type: "hang" }), "firstToken"],
    ["a next piece", scriptedModel().answers(text("Let me"), { type: "hang" }), "silence"],
  ])(
    "ends a call that brings no %s, and says so",
    { tags: ["R32", "R33", "R34", "A17"] },
    async (_, script, name) => {
      const { baseUrl, aborts } = await play(script);
      const error = await failure(ask(baseUrl, { api, deadlines: { ...patient, [`${name}Ms`]: 200 } }));
      expect(error).toMatchObject({ class: "silent", message: expect.stringContaining(`${name}Timeout`) });
      await expect.poll(() => aborts.length).toBe(1);
    },
  );

  it("lets a slow stream live as long as pieces keep coming", async () => {
    const { baseUrl } = await play(
      scriptedModel().says("x".repeat(100)).with({ chunkChars: 5, chunkDelayMs: 60 }),
    );
    const deadlines = { ...patient, silenceMs: 800 };
    const { answer } = await ask(baseUrl, { api, deadlines });
    expect(answer.durationMs).toBeGreaterThan(deadlines.silenceMs);
    expect(answer.content).toMatchObject([{ text: "x".repeat(100) }]);
  });

  it.each([
    ["before the headers", scriptedModel().answers().with({ beforeHeaders: "hang" })],
    ["before the first token", scriptedModel().answers({ type: "hang" })],
    ["in the middle", scriptedModel().answers(text("Let me"), { type: "hang" })],
  ])(
    "takes an abort %s to the server within a second and throws its reason",
    { tags: ["F3"] },
    async (_, script) => {
      const served = await play(script);
      const abort = new AbortController();
      const reason = new Error("cancelled by the person");
      const asking = ask(served.baseUrl, { api }, abort.signal);
      asking.catch(() => undefined);
      await expect.poll(() => served.log.length).toBe(1);
      await expect.poll(() => served.log[0]?.request).toBeDefined();
      const abortedAt = Date.now();
      abort.abort(reason);
      await expect(asking).rejects.toBe(reason);
      await expect.poll(() => served.aborts.length).toBe(1);
      expect((served.aborts[0]?.abortedAt ?? Infinity) - abortedAt).toBeLessThan(1_000);
    },
  );
});

describe("what fails before anything is sent", () => {
  const mask = (value: string) => value;
  const signal = new AbortController().signal;

  it("is a missing key, with the variable's name", async () => {
    const model = createAiSdkModel({ environment: {}, mask });
    const error = await failure(model.ask(modelRequest(), () => undefined, signal));
    expect(error).toMatchObject({ class: "credentials", message: expect.stringContaining("OPENAI_API_KEY") });
  });

  it("is an abort that came earlier", async () => {
    const { baseUrl, log } = await play(scriptedModel());
    const reason = new Error("gone");
    await expect(ask(baseUrl, {}, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(log).toHaveLength(0);
  });

  it("is a server that is not there, named by its code", async () => {
    const gone = await startScriptedModel(scriptedModel());
    await gone.close();
    const error = await failure(ask(gone.baseUrl));
    expect(error).toMatchObject({ class: "unavailable", message: expect.stringContaining("ECONNREFUSED") });
  });
});
