import { expect, test } from "vitest";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { operatorPolicySchema, policyRefusal } from "../../activities/config/operator-policy.ts";
import { toExitCode } from "../../client/console/errors.ts";

type Asked = Partial<Record<"sandbox" | "limits" | "run" | "begun", Record<string, unknown>>>;

/** A model of a provider at its usual address. */
function of(model: string) {
  const [name = "", modelName = ""] = model.split("/");
  return { model, modelName, provider: { name } };
}

/** @param asked `run`: what else a session's resolved settings have; `begun`: what its run was started with */
function ruleAgainst(policy: object, { run, begun, ...asked }: Asked = {}): string | undefined {
  const { sandbox, limits } = agentConfigSchema.parse(asked);
  const session = { ...of("openai/gpt-x"), sandbox: { ...sandbox, ...asked.sandbox }, limits, ...run };
  return policyRefusal(operatorPolicySchema.parse(policy), session as never, begun)?.rule;
}

test("an empty policy allows what the defaults ask for, and everything else", () => {
  expect(ruleAgainst({})).toBeUndefined();
  expect(ruleAgainst({}, { sandbox: { memory: "64g", network: "bridge" } })).toBeUndefined();
});

const GPT = { models: ["openai/gpt-*"] };
const MCP = { mcp: ["db-*", "*.example.com"] };

const box = (sandbox: Record<string, unknown>): Asked => ({ sandbox });
const run = (settings: Record<string, unknown>): Asked => ({ run: settings });

const attached = (name: string) =>
  run({ sandbox: { ...agentConfigSchema.parse({}).sandbox, container: { name } } });
const REMOTES = { remotes: ["github.com/acme/*"] };
const repository = (url: string, also: readonly string[] = []) => run({ repository: { url, also } });

test("a container of others may be used where no rule on images, networks or limits is set", () => {
  expect(ruleAgainst({ models: ["openai/*"], max: { steps: 500 } }, attached("theirs"))).toBeUndefined();
});

test.each<[string, object, Asked, Asked]>([
  [
    "images",
    { images: ["longhaul-sandbox:*", "r.example.com/a@sha256:12*"] },
    box({ image: "longhaul-sandbox.evil:4" }),
    box({ image: `r.example.com/a@sha256:${"1234".repeat(16)}` }),
  ],
  ["runtimes", { runtimes: ["runsc"] }, {}, box({ runtime: "runsc" })],
  ["networks", { networks: ["none"] }, box({ network: "listed" }), box({ network: "none" })],
  ["allow", { allow: ["10.1.0.0/16"] }, box({ allow: ["10.0.0.0/8"] }), box({ allow: ["10.1.2.0/24"] })],
  [
    "allow",
    { allow: ["npm.example.com"] },
    box({ registries: { npm: ["https://other.example.com/"] } }),
    box({ registries: { npm: ["https://npm.example.com/"] } }),
  ],
  ["max.memory", { max: { memory: "2g" } }, box({ memory: "2049m" }), box({ memory: "2048m" })],
  ["max.cpus", { max: { cpus: 1 } }, box({ cpus: 1.5 }), box({ cpus: 1 })],
  ["max.pids", { max: { pids: 100 } }, {}, box({ pids: 100 })],
  ["max.disk", { max: { disk: "5g" } }, box({ disk: "6g" }), box({ disk: "5g" })],
  ["max.saved", { max: { saved: "3g" } }, {}, { limits: { maxSaved: "3072m" } }],
  ["max.steps", { max: { steps: 300 } }, {}, { limits: { maxSteps: 300 } }],
  ["max.costUsd", { max: { costUsd: 5 } }, {}, { limits: { maxCostUsd: 5 } }],
  ["max.priority", { max: { priority: 2 } }, run({ priority: 1 }), run({ priority: 2 })],
  // Who asks for none has 3, and a client of Temporal's own may give a run what its settings do not say.
  ["max.priority", { max: { priority: 4 } }, {}, run({ priority: 5 })],
  ["max.priority", { max: { priority: 3 } }, { begun: { priorityKey: 2 } }, { begun: { priorityKey: 3 } }],
  [
    "max.priority",
    { max: { priority: 3 } },
    { run: { priority: 2 }, begun: { priorityKey: 4 } },
    { begun: { priorityKey: 4 } },
  ],
  [
    "tenants",
    { tenants: ["acme", "team-*"] },
    run({ tenant: "acme-2" }),
    { run: { tenant: "team-red" }, begun: { fairnessKey: "acme" } },
  ],
  ["tenants", { tenants: ["acme"] }, {}, run({ tenant: "acme" })],
  [
    "tenants",
    { tenants: ["acme"] },
    { run: { tenant: "acme" }, begun: { fairnessKey: "other" } },
    { run: { tenant: "acme" }, begun: {} },
  ],
  ["models", { models: ["openai/gpt-*"] }, run(of("anthropic/claude-x")), {}],
  ["models", GPT, run({ fallback: [of("groq/llama")] }), run({ fallback: [of("openai/gpt-y")] })],
  ["models", GPT, run({ summariser: of("groq/llama") }), run({ summariser: of("openai/gpt-y") })],
  ["models", GPT, run({ delegate: { target: of("groq/llama") } }), run({ delegate: {} })],
  // Another model under an allowed name, another server, or both.
  [
    "models",
    GPT,
    run({ modelName: "o9", provider: { name: "openai" } }),
    run({ modelName: "gpt-9", provider: { name: "openai" } }),
  ],
  ["models", GPT, run({ provider: { name: "openai", baseUrl: "https://gpt.example.com/v1" } }), {}],
  ["models", GPT, run({ body: { model: "o9" } }), run({ body: { user: "me" } })],
  [
    "models",
    { models: ["models.example.com/*", "groq/*"] },
    {},
    run({ provider: { name: "ours", baseUrl: "https://models.example.com/v1" } }),
  ],
  [
    "models",
    { models: ["groq/*"] },
    run({ ...of("groq/a"), provider: { name: "groq", baseUrl: "https://x.example.com/v1" } }),
    run({ ...of("groq/a"), provider: { name: "groq", baseUrl: "https://api.groq.com/openai/v1" } }),
  ],
  [
    "mcp",
    MCP,
    run({ mcpServers: { other: { command: "x" } } }),
    run({ mcpServers: { "db-a": { command: "x" } } }),
  ],
  [
    "mcp",
    MCP,
    run({ mcpServers: { "db-a": { url: "https://x.example.org" } } }),
    run({ mcpServers: { any: { url: "https://a.example.com/mcp" } } }),
  ],
  // What runs in somebody's container, no rule on images, networks or limits holds.
  ...[
    { images: ["*"] },
    { runtimes: ["default"] },
    { networks: ["none"] },
    { domains: ["*"] },
    { guard: ["required"] },
    { allow: [] },
    { max: { memory: "9g" } },
    { max: { cpus: 9 } },
    { max: { pids: 999 } },
    { max: { disk: "99g" } },
  ].map((held): [string, object, Asked, Asked] => [
    "containers",
    held,
    attached("theirs"),
    box({ network: "none", domains: [] }),
  ]),
  ["containers", { containers: ["dev-*"], images: [] }, attached("prod-db"), attached("dev-1")],
  ["builds", { builds: false }, box({ build: { dockerfile: "Dockerfile" } }), {}],
  ["networks", { networks: ["bridge", "none"] }, box({ guard: "best-effort" }), box({ guard: "required" })],
  ["guard", { guard: ["required"] }, box({ guard: "best-effort" }), {}],
  [
    "domains",
    { domains: ["*.example.com"] },
    box({ network: "listed", domains: ["a.example.com", "evil.test"] }),
    box({ network: "listed", domains: ["a.example.com"] }),
  ],
  [
    "domains",
    { domains: ["a.test"] },
    box({ network: "listed", domains: ["a.test"], askForDomains: true }),
    box({ network: "listed", domains: ["a.test"] }),
  ],
  [
    "remotes",
    REMOTES,
    repository("https://github.com/other/app.git"),
    repository("https://github.com/acme/app.git"),
  ],
  [
    "remotes",
    REMOTES,
    repository("https://github.com/acme/../other/x"),
    repository("https://GitHub.com/acme/x"),
  ],
  ["remotes", { remotes: ["*"] }, repository("https://github.com/acme/%2e%2e/x"), repository("FILE:///x")],
  ["remotes", { remotes: ["*/x"] }, repository("FILE:///srv/y"), repository("https://a.test/x")],
  ["remotes", REMOTES, repository("file:///srv/private.git"), repository("git@github.com:acme/app.git")],
  [
    "remotes",
    REMOTES,
    repository("ssh://git@github.com.evil.test/acme/app"),
    repository("ssh://git@github.com/acme/app"),
  ],
  [
    "remotes",
    REMOTES,
    repository("https://github.com/acme/a", ["github.com/other/*"]),
    repository("https://github.com/acme/a", ["github.com/acme/*"]),
  ],
])("%s refuses what exceeds it, and accepts the rest", (rule, policy, beyond, within) => {
  expect(ruleAgainst(policy, beyond)).toBe(rule);
  expect(ruleAgainst(policy, within)).toBeUndefined();
});

test("a policy's refusal counts as wrong usage", () => {
  expect(toExitCode("failed", { failure: "PolicyRefused" })).toBe(2);
});
