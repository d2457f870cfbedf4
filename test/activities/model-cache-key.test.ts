import { expect, it } from "vitest";
import { ask, play } from "../support/model-request.ts";
import { scriptedModel } from "../support/scripted-model.ts";

it.each(["responses", "chat"] as const)(
  "gives a session whose id is too long for a cache's key one of its own, on the %s wire",
  async (api) => {
    const { baseUrl, requests } = await play(scriptedModel().says("Hi.").says("Hi."));
    const provider = { name: "openai", baseUrl, options: { cacheKey: true } };
    const id = "x".repeat(64);
    for (const cacheKey of [id, `${id}.s12c0`]) await ask(baseUrl, { api, cacheKey, provider });
    expect(requests[0]?.raw["prompt_cache_key"]).toBe(id);
    expect(requests[1]?.raw["prompt_cache_key"]).toMatch(/^[\da-f]{64}$/);
  },
);
