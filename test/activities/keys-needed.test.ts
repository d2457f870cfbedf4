/** No worker comes up without a key that sessions need, if the last one had it or the verb's own session asks for it. */
import { expect, it } from "vitest";
import { createSession } from "../../activities/store/sessions.ts";
import { lackingKeys } from "../../client/setup/up.ts";
import type { LocalServices } from "../../client/setup/services.ts";
import { directConfig } from "../support/direct-agent.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(5);

const openai = { name: "openai", baseUrlEnv: "OPENAI_BASE_URL", keyEnv: "OPENAI_API_KEY" };
const ollama = { name: "ollama", baseUrl: "http://127.0.0.1:11434/v1" };

it("names the key and who needs it, of open sessions only what the last worker had", async () => {
  const add = (id: string, config: Parameters<typeof directConfig>[0]) =>
    createSession(database.store, { id, task: "Go.", config: directConfig(config) });
  await add("keys-a", { provider: openai });
  await add("keys-b", { provider: ollama });
  await add("keys-c", {
    provider: { name: "acme", keyEnv: "ACME_API_KEY" },
    fallback: [{ ...directConfig(), provider: ollama }],
  });
  const lacks = async (had: readonly string[], reference?: string, environment = {}) =>
    (
      await lackingKeys({
        services: { databaseUrl: database.url } as LocalServices,
        environment,
        had,
        reference,
      })
    )?.message;
  const message = "would lack OPENAI_API_KEY, which keys-a needs; none was started";
  expect(await lacks(["OPENAI_API_KEY", "ACME_API_KEY"])).toContain(message);
  expect(await lacks([], "keys-a")).toContain(message);
  expect(await lacks([])).toBeUndefined();
  expect(await lacks(["OPENAI_API_KEY"], "keys-a", { OPENAI_API_KEY: "sk" })).toBeUndefined();
  expect(await lacks([], "keys-b")).toBeUndefined();
  // Another model takes its steps over.
  expect(await lacks([], "keys-c")).toBeUndefined();
  expect(await lacks([], "no-such-session")).toBeUndefined();
});
