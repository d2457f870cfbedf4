import { describe, expect, it } from "vitest";
import { perTest } from "../support/per-file.ts";
import { scriptedModel, startScriptedModel } from "../support/scripted-model.ts";

const server = perTest(() => startScriptedModel({ parts: [{ type: "text", text: "ok" }] }));

async function post(path: string, body: unknown, baseUrl = server.baseUrl): Promise<number> {
  const response = await fetch(`${baseUrl}${path}`, {
    method: "POST",
    headers: { authorization: "Bearer x" },
    body: JSON.stringify(body),
  });
  await response.text();
  return response.status;
}

const say = (text: string) => ({ role: "user", content: text });
const responses = (input: unknown[], more: Record<string, unknown> = {}) =>
  post("/responses", { model: "gpt-4o", store: false, input: [say("go"), ...input], ...more });

describe("the bill", () => {
  const long = say("word ".repeat(2_000));
  const cachedOf = () => server.log.map(({ usage }) => usage?.cached);

  it("has cached tokens in steps of 128 for a prefix under the same key", async () => {
    await responses([long], { prompt_cache_key: "a" });
    await responses([long, say("more")], { prompt_cache_key: "a" });
    await responses([long, say("more")], { prompt_cache_key: "b" });
    const [first, second, other] = cachedOf();
    expect(first).toBe(0);
    expect(second).toBeGreaterThan(1_900);
    expect((second ?? 1) % 128).toBe(0);
    expect(other).toBe(0);
  });

  it("has none if the prefix changed at its beginning, or is shorter than 1,024", async () => {
    await responses([long]);
    await responses([long], { instructions: "another system prompt" });
    const short = say("word ".repeat(700));
    await responses([short]);
    await responses([short, say("more")]);
    expect(cachedOf()).toEqual([0, 0, 0, 0]);
  });
});

it("an unscripted request is answered 500 and fails the test at the server's end", async () => {
  const empty = await startScriptedModel(scriptedModel());
  expect(await post("/chat/completions", { model: "gpt-4o", messages: [say("hello?")] }, empty.baseUrl)).toBe(
    500,
  );
  await expect(empty.close()).rejects.toThrow("hello?");
});
