import { expect, test } from "vitest";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { keyOf } from "../../activities/workspace/kept-set-up.ts";

const key = (sandbox: object = {}, owner = "one", depends = ["packages", "hash"]) =>
  keyOf(agentConfigSchema.parse({ sandbox: { setup: ["npm ci"], ...sandbox } }), owner, depends);

test("a set-up is cached by everything that it depends on, and by its owner", () => {
  expect(key()).toMatch(/^[0-9a-f]{32}$/);
  // Settings that do not change its result.
  expect(key({ memory: "4g", setup: { commands: ["npm ci"], optional: true } })).toBe(key());
  const others = [
    key({ setup: ["npm install"] }),
    key({ image: "mine:1" }),
    key({ network: "none" }),
    key({ env: { A: "1" } }),
    key({ registries: "none" }),
    key({}, "two"),
    key({}, "one", ["packages", "other"]),
    key({}, "one", ["files", "hash"]),
  ];
  expect(new Set([key(), ...others]).size).toBe(others.length + 1);
});
