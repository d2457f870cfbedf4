import { expect, it } from "vitest";
import { agentConfigSchema, type RunConfig } from "../../../activities/config/agent-config.ts";
import { followSchema } from "../../../activities/config/follow-settings.ts";
import { mcpServersSchema } from "../../../activities/config/mcp-settings.ts";
import { toolRegistry } from "../../../activities/tools/index.ts";
import { sessionTools } from "../../../activities/tools/session-tools.ts";

const tool = (name: string, hints: object) => ({ name, description: "Does it.", inputSchema: {}, hints });
const catalogues = [
  {
    server: "a",
    era: "",
    digest: "a",
    found: [],
    tools: [
      tool("look", { readOnly: true }),
      tool("set_status", { idempotent: true }),
      tool("drop", { destructive: true }),
    ],
  },
];
const mcpServers = mcpServersSchema.parse({ a: { url: "https://x.example/mcp", trustHints: true } });
const { questions } = agentConfigSchema.parse({});
const namesOf = (config: Partial<RunConfig>) => [
  ...sessionTools(toolRegistry, {
    config: { contextWindow: 128_000, mcpServers, questions, sandbox: {}, ...config } as RunConfig,
    catalogues,
  }).keys(),
];

it("a session that plans has no tool that changes anything, even one that may be repeated", () => {
  const names = namesOf({ plan: true });
  expect(names).toContain("a__look");
  for (const name of ["a__set_status", "a__drop", "write_file", "edit_file", "delegate"])
    expect(names).not.toContain(name);
  expect(names).toContain("exit_plan");
});

it("others have all of a server's tools, and no exit_plan", () => {
  const names = namesOf({});
  expect(names).toEqual(expect.arrayContaining(["a__look", "a__set_status", "a__drop", "write_file"]));
  expect(names).not.toContain("exit_plan");
});

it("one that stays with its pull request can answer reviewers, and no other", () => {
  const names = ["reply_review", "rerun_checks"];
  const on = (follow: object) => ({
    repository: { follow: followSchema.parse(follow) } as NonNullable<RunConfig["repository"]>,
  });
  expect(namesOf(on({ on: true }))).toEqual(expect.arrayContaining(names));
  for (const name of names) {
    expect(namesOf({})).not.toContain(name);
    expect(namesOf(on({ rounds: 2 }))).not.toContain(name);
    expect(namesOf({ ...on({ on: true }), plan: true })).not.toContain(name);
  }
});
