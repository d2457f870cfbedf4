import { expect, test } from "vitest";
import { finished, longhaul } from "../support/commands/longhaul.ts";

test("writes a whole session as one JSON document, and its trajectory in the public format", async () => {
  const id = await finished("run: echo hello\nsay: Done.");
  const whole = JSON.parse((await longhaul(["export", id, "--json"])).out) as Record<string, unknown[]>;
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

test("messages prints a conversation, or one JSON document", async () => {
  const id = await finished("run: seq 1 20\nsay: Counted.");
  const { code, out } = await longhaul(["messages", id]);
  expect(code).toBe(0);
  expect(out).toMatch(/── you .*\nrun: seq 1 20\n/);
  expect(out).toContain("▸ bash seq 1 20  completed\n    │ … 12 lines above, shown by --full\n    │ 13\n");
  expect(out).toMatch(/── agent step 2 .*\nCounted\.\n$/);
  expect((await longhaul(["messages", id, "--full"])).out).toContain("    │ 1\n    │ 2\n");
  const { messages } = JSON.parse((await longhaul(["messages", id, "--json"])).out) as {
    messages: { role: string }[];
  };
  expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "assistant"]);
});

test("an unknown format is 2", async () => {
  expect((await longhaul(["export", "x", "--format", "xml"])).code).toBe(2);
});
