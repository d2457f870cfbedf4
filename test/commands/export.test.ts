import { expect, test } from "vitest";
import { finished, longhaul } from "../support/commands/longhaul.ts";

test("gives everything of a session as one JSON document, and its trajectory in the public format", async () => {
  const id = await finished("run: echo hello\nsay: Done.");
  const whole = JSON.parse((await longhaul(["export", id])).out) as Record<string, unknown[]>;
  expect(Object.keys(whole)).toEqual(
    expect.arrayContaining(["session", "messages", "toolCalls", "compactionEvents", "modelCalls"]),
  );
  expect(whole["toolCalls"]).toHaveLength(1);
  expect(whole["modelCalls"]?.[0]).toMatchObject({
    estimatedInput: expect.any(Number),
    inputTokens: expect.any(Number),
  });
  const atif = JSON.parse((await longhaul(["export", id, "--format", "atif"])).out) as Record<
    string,
    unknown
  >;
  expect(atif["steps"]).toBeInstanceOf(Array);
});

test("an unknown session is 5, an unknown format 2", async () => {
  expect(await longhaul(["export", "no-such-session"])).toMatchObject({ code: 5, out: "" });
  expect((await longhaul(["export", "x", "--format", "xml"])).code).toBe(2);
});
