import { describe, expect, it } from "vitest";
import { mcpServersSchema } from "../../../activities/config/mcp-settings.ts";
import type { McpCatalogue } from "../../../activities/contract/tools.ts";
import { toolRegistry, toolSpecs } from "../../../activities/tools/index.ts";
import { mcpToolName, withMcpTools } from "../../../activities/tools/mcp-tools.ts";
import { findTools } from "../../../activities/tools/search-tools.ts";

const entry = (name: string, description = "Does it.", hints = {}) => ({
  name,
  description,
  inputSchema: { type: "object", properties: { id: { type: "string" } } },
  hints,
});

const catalogue = (server: string, tools: McpCatalogue["tools"], found: readonly string[] = []) => ({
  server,
  era: "2026-07-28",
  digest: `${server} ${tools.length}`,
  tools,
  found,
});

const session = (servers: object, catalogues: readonly McpCatalogue[], contextWindow = 128_000) => ({
  config: { mcpServers: mcpServersSchema.parse(servers), contextWindow },
  catalogues,
});

const url = "https://x.example/mcp";
const own = toolSpecs().map(({ name }) => name);
const added = (registry: Parameters<typeof toolSpecs>[0]) =>
  toolSpecs(registry)
    .map(({ name }) => name)
    .filter((name) => !own.includes(name));

it("names of a server's tools join server and tool, with a hash if the result is too long", () => {
  expect(mcpToolName("git", "log")).toBe("git__log");
  expect(mcpToolName("git", "log.all")).toMatch(/^git__log_all_[0-9a-f]{8}$/);
  const long = mcpToolName("git", "x".repeat(80));
  expect(long).toHaveLength(64);
  expect(long).not.toBe(mcpToolName("git", "x".repeat(81)));
});

describe("a session's tools", () => {
  const tools = [entry("get_one"), entry("drop", "Drops.", { readOnly: true, idempotent: true })];

  it("are the worker's own object if it has no servers", () => {
    expect(withMcpTools(toolRegistry, session({}, []))).toBe(toolRegistry);
  });

  it("include the worker's, with the same object for the same tools", () => {
    const given = session({ a: { url, tools: ["get_*"] } }, [catalogue("a", tools)]);
    const registry = withMcpTools(toolRegistry, given);
    expect(added(registry)).toEqual(["a__get_one"]);
    expect(withMcpTools(toolRegistry, structuredClone(given))).toBe(registry);
  });

  it("are read-only by configuration, or by the server's annotation if that is trusted", () => {
    const readOnly = (settings: object) => {
      const registry = withMcpTools(
        toolRegistry,
        session({ a: { url, ...settings } }, [catalogue("a", tools)]),
      );
      return ["a__get_one", "a__drop"].map((name) => registry.get(name)?.readOnly);
    };
    expect(readOnly({})).toEqual([false, false]);
    expect(readOnly({ readOnly: ["get_*"] })).toEqual([true, false]);
    expect(readOnly({ trustHints: true })).toEqual([false, true]);
  });

  it("are behind a search if they are more than providers take, however large the window", () => {
    const many = Array.from({ length: 100 }, (_, place) => entry(`tool_${place}`));
    const both = [catalogue("big", many), catalogue("small", tools)];
    const given = session({ big: { url }, small: { url } }, both, 1_000_000);
    expect(added(withMcpTools(toolRegistry, given))).toEqual([
      "small__get_one",
      "small__drop",
      "search_tools",
    ]);
  });

  it(
    "are behind a search if they take more than a tenth of the window, and are found in order",
    { tags: ["M6"] },
    () => {
      const many = Array.from({ length: 80 }, (_, place) => entry(`tool_${place}`, "words ".repeat(250)));
      const servers = { big: { url }, small: { url } };
      const both = [catalogue("big", many), catalogue("small", tools)];
      expect(added(withMcpTools(toolRegistry, session(servers, both)))).toEqual([
        "small__get_one",
        "small__drop",
        "search_tools",
      ]);
      const found = [catalogue("big", many, ["big__tool_7", "big__tool_3"]), catalogue("small", tools)];
      const registry = withMcpTools(toolRegistry, session(servers, found));
      expect(added(registry).slice(3)).toEqual(["big__tool_7", "big__tool_3"]);
      // A tool that the model knows from before can be called.
      expect(registry.get("big__tool_9")).toMatchObject({ isHidden: true });
      const always = session({ ...servers, big: { url, expose: "always" } }, both);
      expect(added(withMcpTools(toolRegistry, always))).toHaveLength(82);
    },
  );
});

it("a search matches names before descriptions", () => {
  const registry = withMcpTools(
    toolRegistry,
    session({ a: { url } }, [
      catalogue("a", [entry("list", "Lists every issue."), entry("issue_get"), entry("other")]),
    ]),
  );
  const tools = [...registry.values()].filter(({ server }) => server === "a");
  expect(findTools(tools, "Issue!").map(({ name }) => name)).toEqual(["a__issue_get", "a__list"]);
});
