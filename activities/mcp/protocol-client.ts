/** The protocol's client, set up as we use it. */
import { Client, type CallToolResult, type Transport } from "@modelcontextprotocol/client";
import { cutChars } from "../contract/cut-text.ts";
import type { McpServer } from "../config/mcp-settings.ts";
import type { McpToolEntry } from "../contract/mcp.ts";
import { McpFailure } from "./mcp-failure.ts";

const CLIENT = { name: "longhaul", version: "1" };

/** Source: ours, some 500 tokens; a description is read with each request. */
const MAX_DESCRIPTION_CHARS = 2_000;
/** JSON of an input's schema; a longer one is replaced by "anything". Source: ours, some 7,000 tokens. */
const MAX_SCHEMA_CHARS = 20_000;
/** Tools of one server. Source: ours, ten times the largest that people complain about. */
const MAX_TOOLS = 1_000;

/** @param probeMs how long a server may take to say whether it speaks the revision without sessions */
export function createProtocolClient(mode: "auto" | "legacy", probeMs: number): Client {
  return new Client(CLIENT, {
    // Whoever wants to ask a person is told by this that nobody answers.
    capabilities: {},
    versionNegotiation: { mode, probe: { timeoutMs: probeMs } },
  });
}

export interface Listed {
  /** Revision of the protocol. */
  readonly era: string;
  readonly tools: readonly McpToolEntry[];
}

/** What the server offers, in the order of the names: servers may list in any order. */
export async function listTools(
  client: Client,
  options: { timeout: number; signal: AbortSignal },
): Promise<Listed> {
  const { tools } = await client.listTools(undefined, options);
  if (tools.length > MAX_TOOLS)
    throw new McpFailure(`it lists ${tools.length} tools; at most ${MAX_TOOLS} are taken`);
  const names = tools.map(({ name }) => name);
  const twice = names.find((name, place) => names.indexOf(name) !== place);
  if (twice !== undefined) throw new McpFailure(`it lists two tools of the name ${twice}`);
  const entries = tools.map(({ name, title, description, inputSchema, annotations }): McpToolEntry => {
    const hints = {
      ...(annotations?.readOnlyHint === undefined ? {} : { readOnly: annotations.readOnlyHint }),
      ...(annotations?.idempotentHint === undefined ? {} : { idempotent: annotations.idempotentHint }),
      ...(annotations?.destructiveHint === undefined ? {} : { destructive: annotations.destructiveHint }),
    };
    return {
      name,
      description: cutChars(description ?? title ?? name, MAX_DESCRIPTION_CHARS),
      inputSchema: boundedSchema(inputSchema),
      ...(Object.keys(hints).length === 0 ? {} : { hints }),
    };
  });
  return {
    era: client.getNegotiatedProtocolVersion() ?? "",
    tools: entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

function boundedSchema({ $schema: _dialect, ...schema }: Record<string, unknown>): Record<string, unknown> {
  return JSON.stringify(schema).length > MAX_SCHEMA_CHARS ? { type: "object" } : schema;
}

export interface CallLimits {
  readonly settings: Pick<McpServer, "timeout" | "maxTimeout">;
  readonly signal: AbortSignal;
  readonly onProgress: (note: string) => void;
}

/** @throws the library's errors */
export function callTool(
  client: Client,
  { name, inputSchema }: McpToolEntry,
  input: Record<string, unknown>,
  { settings, signal, onProgress }: CallLimits,
): Promise<CallToolResult> {
  return client.callTool(
    { name, arguments: input },
    {
      timeout: settings.timeout,
      maxTotalTimeout: settings.maxTimeout,
      resetTimeoutOnProgress: true,
      signal,
      onprogress: ({ progress, total, message }) =>
        onProgress(message ?? `${progress}${total === undefined ? "" : ` of ${total}`}`),
      // Without the output's schema: what does not fit it has happened all the same, and the model reads it.
      toolDefinition: { name, inputSchema: { ...inputSchema, type: "object" } },
    },
  );
}

/** @throws the library's errors; the client is closed then */
export async function connected(
  client: Client,
  transport: Transport,
  options: NonNullable<Parameters<Client["connect"]>[1]>,
): Promise<Client> {
  try {
    await client.connect(transport, options);
    return client;
  } catch (error) {
    await client.close().catch(() => undefined);
    throw error;
  }
}
