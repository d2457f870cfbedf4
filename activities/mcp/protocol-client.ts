/** Sets up and calls the protocol's client. */
import {
  Client,
  TRACEPARENT_META_KEY,
  type CallToolResult,
  type InputRequiredResult,
  type Transport,
} from "@modelcontextprotocol/client";
import type { McpServer } from "../config/mcp-settings.ts";
import type { McpToolEntry } from "../contract/tools.ts";
import { cutChars } from "../text/cut.ts";
import { admitAnswers, toolsThatCame } from "./answers.ts";
import { isStaleSession } from "./failures.ts";
import { type ListedTools, McpFailure } from "./mcp.ts";
import { TASKS } from "./tasks.ts";

const CLIENT = { name: "longhaul", version: "1" };

/** Chosen: some 500 tokens; a description is read with each request. */
const MAX_DESCRIPTION_CHARS = 2_000;
/** JSON of an input's schema; a longer one is replaced by "anything". Chosen: some 7,000 tokens. */
const MAX_SCHEMA_CHARS = 20_000;
/** Tools of one server. Chosen: ten times the largest that people complain about. */
const MAX_TOOLS = 1_000;

/** How many questions a server of the older revisions asked while a call was open, by client. */
const unanswered = new WeakMap<Client, number>();

/** @param probeMs how long a server may take to say whether it speaks the revision without sessions */
export function createProtocolClient(mode: "auto" | "legacy", probeMs: number): Client {
  const client = new Client(CLIENT, {
    capabilities: { elicitation: { form: {}, url: {} }, extensions: { [TASKS]: {} } },
    versionNegotiation: { mode, probe: { timeoutMs: probeMs } },
  });
  // Such servers wait for the answer on an open connection, which would time out before a person answers. Servers of newer
  // revisions ask in their results instead.
  client.setRequestHandler("elicitation/create", () => {
    unanswered.set(client, questionsTo(client) + 1);
    return { action: "cancel" };
  });
  return client;
}

const questionsTo = (client: Client): number => unanswered.get(client) ?? 0;

/** Until when a server's list is valid, by client, in ms of `performance.now()`. */
const goodUntil = new WeakMap<Client, number>();

/** Whether the server's list must be checked: on a new connection, after a notice of a change, and when it is too old. */
export const isListDue = (client: Client): boolean => (goodUntil.get(client) ?? 0) <= performance.now();

/** Listens for changes. If the server has to be asked for notices, nothing waits for its reply. */
export function hearChanges(client: Client): void {
  client.setNotificationHandler("notifications/tools/list_changed", () => void goodUntil.delete(client));
  const isAsked = client.getProtocolEra() === "modern";
  if (isAsked && client.getServerCapabilities()?.tools?.listChanged === true)
    client.listen({ toolsListChanged: true }).catch(() => undefined);
}

/** What the server offers, in the order of the names: servers may list in any order. */
export async function listTools(
  client: Client,
  options: { timeout: number; signal: AbortSignal },
): Promise<ListedTools> {
  // Set before the request: a change that arrives meanwhile makes the list due again.
  goodUntil.set(client, Infinity);
  const { tools, ttlMs, isPartial } = await listPages(client, options);
  if (typeof ttlMs === "number" && ttlMs > 0 && !isListDue(client))
    goodUntil.set(client, performance.now() + ttlMs);
  if (tools.length > MAX_TOOLS)
    throw new McpFailure(`it lists ${tools.length} tools; at most ${MAX_TOOLS} are taken`);
  // If two tools have the same name, a call reaches only one of them.
  const byName = new Map(tools.toReversed().map((tool) => [tool.name, tool]));
  const entries = [...byName.values()].map(
    ({ name, title, description, inputSchema, annotations }): McpToolEntry => {
      const hints = {
        ...(annotations?.readOnlyHint === undefined ? {} : { readOnly: annotations.readOnlyHint }),
        ...(annotations?.idempotentHint === undefined ? {} : { idempotent: annotations.idempotentHint }),
        ...(annotations?.destructiveHint === undefined ? {} : { destructive: annotations.destructiveHint }),
      };
      return {
        name,
        description: cutChars(description ?? title ?? name, MAX_DESCRIPTION_CHARS),
        inputSchema: boundedSchema(inputSchema),
        hints: Object.keys(hints).length === 0 ? undefined : hints,
      };
    },
  );
  return {
    era: client.getNegotiatedProtocolVersion() ?? "",
    tools: entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    isPartial: isPartial || undefined,
  };
}

/** If a later page does not come, the tools on those that did are taken. @throws the library's errors if no page has any */
async function listPages(client: Client, options: { timeout: number; signal: AbortSignal }) {
  try {
    const { tools, ttlMs } = await client.listTools(undefined, { ...options, cacheMode: "refresh" });
    return { tools, ttlMs, isPartial: false };
  } catch (error) {
    const tools = toolsThatCame(client.transport) as readonly ListedTool[];
    if (tools.length === 0 || isStaleSession(error)) throw error;
    return { tools, ttlMs: undefined, isPartial: true };
  }
}

type ListedTool = Awaited<ReturnType<Client["listTools"]>>["tools"][number];

function boundedSchema({ $schema: _dialect, ...schema }: Record<string, unknown>): Record<string, unknown> {
  return JSON.stringify(schema).length > MAX_SCHEMA_CHARS ? { type: "object" } : schema;
}

export interface CallLimits {
  readonly settings: Pick<McpServer, "timeout" | "maxTimeout">;
  readonly signal: AbortSignal;
  readonly onProgress: (note: string) => void;
}

/** What goes back with an answer: a new request of the same call. */
export interface Continued {
  readonly inputResponses: Readonly<Record<string, object>>;
  readonly requestState?: string;
}

export interface Requested {
  readonly entry: McpToolEntry;
  readonly input: Record<string, unknown>;
  readonly continued?: Continued | undefined;
  readonly traceparent?: string | undefined;
}

/** @throws the library's errors */
export async function callTool(
  client: Client,
  { entry, input, continued, traceparent }: Requested,
  { settings, signal, onProgress }: CallLimits,
): Promise<CallToolResult | InputRequiredResult> {
  const { name, inputSchema } = entry;
  const before = questionsTo(client);
  const meta = traceparent === undefined ? {} : { _meta: { [TRACEPARENT_META_KEY]: traceparent } };
  const result: CallToolResult | InputRequiredResult = await client.callTool(
    { name, arguments: input, ...continued, ...meta },
    {
      timeout: settings.timeout,
      maxTotalTimeout: settings.maxTimeout,
      resetTimeoutOnProgress: true,
      // The caller asks a person the server's questions.
      allowInputRequired: true,
      signal,
      onprogress: ({ progress, total, message }) =>
        onProgress(message ?? `${progress}${total === undefined ? "" : ` of ${total}`}`),
      // Without the output schema: the model should read a result even if it does not match.
      toolDefinition: { name, inputSchema: { ...inputSchema, type: "object" } },
    },
  );
  if (questionsTo(client) === before || !("content" in result)) return result;
  const { content } = result as CallToolResult;
  return { ...result, content: [{ type: "text", text: NOT_ASKED }, ...content] };
}

const NOT_ASKED =
  "[While this call was open, the server tried to ask a person something. For servers of its protocol revision that is not supported here: the question was cancelled.]";

/** @throws the library's errors; the client is closed then */
export async function connected(
  client: Client,
  transport: Transport,
  options: NonNullable<Parameters<Client["connect"]>[1]>,
): Promise<Client> {
  try {
    await client.connect(admitAnswers(transport), options);
    return client;
  } catch (error) {
    await client.close().catch(() => undefined);
    throw error;
  }
}
