/** Adds the tools of a session's MCP servers to the worker's own. */
import { z } from "zod";
import type { RunConfig } from "../config/agent-config.ts";
import { windowMeasures, type Windowed } from "../config/budget.ts";
import { isListed, isRemote, type McpServer } from "../config/mcp-settings.ts";
import type { McpCatalogue, McpToolEntry } from "../contract/tools.ts";
import { estimateTools } from "../contract/request-size.ts";
import { acceptedName, acceptedSchema } from "./accepted-schema.ts";
import { failure, typedTool, type Tool } from "./tool.ts";
import { createToolRegistry, toolSpec, type ToolRegistry } from "./index.ts";
import { OWN_TOOLS, ownTool } from "./own/own-tools.ts";
import { searchTools } from "./search-tools.ts";

/** Most servers' tools shown, besides ours and those found later. Chosen: OpenAI and Groq accept 128 in all. */
const MAX_SHOWN = 80;

/** The name under which the model calls a server's tool: `server__tool`, with a hash if it does not fit. */
export const mcpToolName = (server: string, tool: string): string =>
  acceptedName(`${server}__${tool}`, /[^A-Za-z0-9_-]/g);

/** Registries by their inputs: the same tools yield the same object. */
const registries = new WeakMap<ToolRegistry, Map<string, ToolRegistry>>();
const MAX_MADE = 200;

interface WithServers {
  readonly config: Pick<RunConfig, "mcpServers"> & Windowed;
  readonly catalogues?: readonly McpCatalogue[];
}

/** The worker's tools, the operator's own and those of the session's servers; the same registry for the same tools. */
export function withMcpTools(worker: ToolRegistry, session: WithServers): ToolRegistry {
  const { config } = session;
  const catalogues = (session.catalogues ?? []).filter(({ tools }) => tools.length > 0);
  if (catalogues.length === 0) return worker;
  const key = JSON.stringify([
    config.mcpServers,
    windowMeasures(config).serverToolsTokens,
    catalogues.map(({ server, digest, found }) => [server, digest, found]),
  ]);
  const byKey = registries.get(worker) ?? new Map<string, ToolRegistry>();
  registries.set(worker, byKey);
  const before = byKey.get(key);
  if (before !== undefined) return before;
  const registry = build(worker, config, catalogues);
  byKey.set(key, registry);
  const [oldest] = byKey.keys();
  if (byKey.size > MAX_MADE && oldest !== undefined) byKey.delete(oldest);
  return registry;
}

function build(
  worker: ToolRegistry,
  config: WithServers["config"],
  catalogues: readonly McpCatalogue[],
): ToolRegistry {
  const servers = catalogues.flatMap(({ server, tools, found }) => {
    const settings = config.mcpServers?.[server];
    return settings === undefined ? [] : [{ settings, found, tools: toMcpTools(server, settings, tools) }];
  });
  const ownTools = (catalogues.find(({ server }) => server === OWN_TOOLS)?.tools ?? []).map(ownTool);
  const searched = behindSearch(servers, windowMeasures(config).serverToolsTokens);
  if (searched.size === 0)
    return createToolRegistry([...worker.values(), ...ownTools, ...servers.flatMap(({ tools }) => tools)]);
  const visible = servers.filter((server) => !searched.has(server)).flatMap(({ tools }) => tools);
  const hidden = servers.filter((server) => searched.has(server)).flatMap(({ tools }) => tools);
  const foundNames = new Set(servers.flatMap((server) => server.found));
  return createToolRegistry([
    ...worker.values(),
    ...ownTools,
    ...visible,
    searchTools(hidden),
    // After all others, in the order found, so that the cached prefix stays the same.
    ...[...foundNames].flatMap((name) => hidden.filter((tool) => tool.name === name)),
    ...hidden.filter(({ name }) => !foundNames.has(name)).map((tool) => ({ ...tool, isHidden: true })),
  ]);
}

interface ServerTools {
  readonly settings: McpServer;
  readonly tools: readonly Tool[];
}

/** The servers whose tools are found by search: those configured so, then the largest of the others until the rest fits. */
function behindSearch<Server extends ServerTools>(
  servers: readonly Server[],
  maxTokens: number,
): Set<Server> {
  const sized = servers.map((server) => ({ server, tokens: estimateTools(server.tools.map(toolSpec)) }));
  const searched = new Set(servers.filter(({ settings }) => settings.expose === "search"));
  const auto = sized
    .filter(({ server }) => server.settings.expose === "auto")
    .toSorted((a, b) => a.tokens - b.tokens);
  const isTooMuch = () =>
    auto.reduce((sum, { tokens }) => sum + tokens, 0) > maxTokens ||
    auto.reduce((sum, { server }) => sum + server.tools.length, 0) > MAX_SHOWN;
  while (isTooMuch()) {
    const largest = auto.pop();
    if (largest !== undefined) searched.add(largest.server);
  }
  return searched;
}

/** The tools of a server that a session is offered. */
export function toMcpTools(server: string, settings: McpServer, entries: readonly McpToolEntry[]): Tool[] {
  return entries
    .filter(({ name }) => isListed(settings.tools, name))
    .map((entry) => mcpTool(server, settings, entry));
}

const input = z.record(z.string(), z.unknown());

function mcpTool(server: string, settings: McpServer, entry: McpToolEntry): Tool {
  const { hints } = entry;
  const isReadOnly =
    isListed(settings.readOnly, entry.name) || (settings.trustHints && hints?.readOnly === true);
  const isRepeatable = isReadOnly || (settings.trustHints && hints?.idempotent === true);
  const { inputSchema, original } = acceptedSchema(entry.inputSchema);
  return typedTool({
    name: mcpToolName(server, entry.name),
    description: entry.description,
    input,
    inputSchema,
    readOnly: isRepeatable,
    // A repeatable tool may still change something.
    onlyReads: isReadOnly,
    // A server on another machine has no access to the workspace.
    changesFiles: !isReadOnly && !isRemote(settings),
    server,
    about: firstWords,
    run: async (callInput, context) =>
      (await context.mcp?.call({ server, entry, isRepeatable }, original(callInput), context)) ??
      failure("This worker does not call MCP servers. Do without this tool."),
  });
}

/** The most informative part of a call's input: its first text, otherwise all of it. */
function firstWords(callInput: Record<string, unknown>): string {
  const text = Object.values(callInput).find((value) => typeof value === "string" && value.trim() !== "");
  return typeof text === "string" ? `"${text.trim()}"` : JSON.stringify(callInput);
}
