/** A provider that falls silent in mid-answer and then goes on: a model that reasons is waited for, and asked only once. */
import { describe, expect, it } from "vitest";
import { ask, play, type RequestParts } from "../support/model-request.ts";
import { scriptedModel, text, thought, type ModelScript } from "../support/scripted-model.ts";

/** Silent for longer than any model may be, but one that reasons; as all of them divided by one number. */
const SILENCE_MS = 3_500;
const deadlines = {
  connectMs: 20_000,
  firstTokenMs: 2_500,
  silenceMs: 500,
  thinkingMs: 30_000,
  answerMs: 60_000,
};
const half = [text("Half "), { type: "wait", ms: SILENCE_MS }, text("an answer.")] as const;

describe.each(["responses", "chat"] as const)("a silence in mid-answer on the %s wire", (api) => {
  const asked = async (script: ModelScript, request: RequestParts) => {
    const { baseUrl, log } = await play(script);
    const model = "o3";
    const outcome = await ask(baseUrl, { api, model, deadlines, ...request }).catch(
      (error: unknown) => error,
    );
    return { outcome, log };
  };

  it("of a model that reasons is ridden out: known to, asked to, or seen to in this answer", async () => {
    const outcomes = await Promise.all([
      asked(scriptedModel().answers(...half), { thinks: true }),
      asked(scriptedModel().answers(...half), { reasoning: { effort: "high" } }),
      asked(scriptedModel().answers(thought("Hm."), ...half), {}),
    ]);
    for (const { outcome, log } of outcomes) {
      expect(outcome).toMatchObject({ answer: { finish: "stop" } });
      expect(JSON.stringify(outcome)).toMatch(/Half .*an answer\./);
      expect(log).toHaveLength(1);
    }
  });

  it("of any other model ends the call", async () => {
    const { outcome } = await asked(scriptedModel().answers(...half), { model: "gpt-4o" });
    expect(outcome).toMatchObject({
      class: "silent",
      message: expect.stringContaining("mid-answer for 0.5 s (limits.silenceTimeout)"),
    });
  });

  it("of a model that reasons ends the call if it lasts, and names its own setting", async () => {
    const dead = scriptedModel().answers(thought("Hm."), text("Half"), { type: "hang" });
    const { outcome } = await asked(dead, { deadlines: { ...deadlines, thinkingMs: 2_600 } });
    expect(outcome).toMatchObject({
      class: "silent",
      message: expect.stringContaining("mid-answer for 2.6 s (limits.thinkingTimeout)"),
    });
  });
});

it("of a model whose thoughts are hidden is ridden out", async () => {
  const { baseUrl, log } = await play(scriptedModel().answers(thought(""), ...half));
  const { answer } = await ask(baseUrl, { deadlines });
  expect(answer.content.map(({ type }) => type)).toEqual(["reasoning", "text", "text"]);
  expect(log).toHaveLength(1);
});
