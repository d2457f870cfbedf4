import { expect, it } from "vitest";
import { parseStoredConfig } from "../../activities/store/stored-settings.ts";
import { configOf as configFor } from "../support/run-config.ts";

it("gives settings without what Postgres, a variable or a header refuses, whoever stored them", () => {
  const { sandbox, ...rest } = configFor({});
  const stored = { ...rest, model: "openai/a\0b", sandbox: { ...sandbox, env: { A: "1\u0000\ud800" } } };
  const config = parseStoredConfig("calm-otter", JSON.stringify(stored));
  expect(config.model).toBe("openai/a␀b");
  expect(config.sandbox.env).toEqual({ A: "1␀\ufffd" });
});
