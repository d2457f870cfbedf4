import { expect, test } from "vitest";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { ofOwner, sandboxSpec } from "../../activities/sandbox/sandbox-host.ts";
import { toSetUpKey } from "../../activities/workspace/kept-set-up.ts";

const key = (sandbox: object = {}, owner = "one", depends = ["packages", "hash"]) =>
  toSetUpKey(agentConfigSchema.parse({ sandbox: { setup: ["npm ci"], ...sandbox } }), owner, depends);

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

test("what is kept under the key of one client is not another owner's", () => {
  const config = agentConfigSchema.parse({});
  const inherited = { cache: "0123456789abcdef", setup: "0123456789abcdef" };
  const spec = (owner?: string) =>
    sandboxSpec({ id: "s", config: { ...config, sandbox: { ...config.sandbox, inherited } }, owner });
  const keys = [undefined, "alice", "bob", ""].map((owner) => spec(owner).cache);
  expect(new Set(keys).size).toBe(4);
  expect(spec("alice").cache).toBe(spec("alice").cache);
  // Nobody gets a key by writing it down in the settings.
  expect(ofOwner(spec("alice").cache ?? "", "bob")).not.toBe(spec("alice").cache);
});
