/** The operator's own tools of a worker: validated at startup, and as stored with sessions. Pure. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { issueTexts } from "../../config/issue-text.ts";
import type { McpCatalogue, McpToolEntry } from "../../contract/tools.ts";
import { reasonOf } from "../../contract/errors.ts";
import { acceptedSchema } from "../accepted-schema.ts";
import { failure } from "../failure.ts";
import { findTool, toolRegistry } from "../index.ts";
import { oneLine } from "../paths.ts";
import { SEARCH_TOOLS } from "../search-tools.ts";
import { typedTool, type Tool } from "../tool.ts";
import type { ToolDefinition } from "./define-tool.ts";

/** Replaces a server's name among a session's catalogues; no server can have this name. */
export const OWN_TOOLS = ":own";

/** Source: ours, as for a command; the longest that a command may take. */
const TIMEOUT_MS = 60_000;
const MAX_TIMEOUT_MS = 600_000;
/** Source: ours; the tools are at the beginning of every request of every session. */
const MAX_TOOLS = 50;
const MAX_DESCRIPTION_CHARS = 4_000;

const definition = z.object({
  name: z
    .string()
    .regex(
      /^[A-Za-z](?!.*__)[A-Za-z0-9_-]{0,63}$/,
      "expected 1 to 64 letters, digits, _ and -, beginning with a letter, without __",
    ),
  description: z.string().min(1).max(MAX_DESCRIPTION_CHARS),
  input: z.custom<z.ZodType>((value) => typeof (value as z.ZodType | undefined)?.safeParse === "function", {
    error: "expected a schema of zod",
  }),
  readOnly: z.boolean().default(false),
  timeoutMs: z.number().int().positive().max(MAX_TIMEOUT_MS).default(TIMEOUT_MS),
  run: z.custom<ToolDefinition["run"]>((value) => typeof value === "function", {
    error: "expected a function",
  }),
});

export interface OwnTool extends z.output<typeof definition> {
  readonly entry: McpToolEntry;
}

export interface OwnTools {
  readonly byName: ReadonlyMap<string, OwnTool>;
  /** The tools as a session stores them. */
  readonly catalogue: Omit<McpCatalogue, "found">;
  /** The longest timeout among the tools. */
  readonly maxTimeoutMs: number;
}

/** Reads a file's default export. @throws Error that names the tool and what is wrong with it */
export function ownToolsOf(exported: unknown): OwnTools {
  if (!Array.isArray(exported))
    throw new Error("its default export is not a list: export default [defineTool({ … })]");
  if (exported.length > MAX_TOOLS)
    throw new Error(`it has ${exported.length} tools; at most ${MAX_TOOLS} are allowed`);
  const byName = new Map<string, OwnTool>();
  for (const [place, given] of (exported as unknown[]).entries()) {
    const tool = toolOf(given, place);
    if (byName.has(tool.name)) throw new Error(`two tools are called ${tool.name}`);
    byName.set(tool.name, tool);
  }
  const tools = [...byName.values()].map(({ entry }) => entry);
  const digest = createHash("sha256").update(JSON.stringify(tools)).digest("hex");
  return {
    byName,
    catalogue: { server: OWN_TOOLS, era: "own", tools, digest },
    maxTimeoutMs: Math.max(0, ...[...byName.values()].map(({ timeoutMs }) => timeoutMs)),
  };
}

function toolOf(given: unknown, place: number): OwnTool {
  const parsed = definition.safeParse(given);
  const named = (given as { readonly name?: unknown } | null)?.name;
  const which =
    typeof named === "string" ? `the tool ${oneLine(named, 80)}` : `tool ${place + 1} of the list`;
  if (!parsed.success) throw new Error(`${which}: ${issueTexts(parsed.error, definition)[0]}`);
  const { name, description, input, readOnly } = parsed.data;
  if (findTool(toolRegistry, name) !== undefined || name === SEARCH_TOOLS)
    throw new Error(`${which}: Longhaul has a tool of this name; give it another`);
  return {
    ...parsed.data,
    entry: { name, description, inputSchema: schemaOf(which, input), hints: { readOnly } },
  };
}

function schemaOf(which: string, input: z.ZodType): Record<string, unknown> {
  try {
    const { $schema: _dialect, ...schema } = z.toJSONSchema(input, { io: "input" });
    if (schema.type === "object") return schema;
  } catch (error) {
    throw new Error(
      `${which}: input cannot be shown to a model (${oneLine(reasonOf(error), 200)}); take a schema of zod 4`,
    );
  }
  throw new Error(`${which}: input is not an object: z.object({ … })`);
}

const input = z.record(z.string(), z.unknown());

/** A tool as a session has it: the worker that gets the call runs it, if it has the tool. */
export function ownTool({ name, description, hints, ...entry }: McpToolEntry): Tool {
  const { inputSchema, original } = acceptedSchema(entry.inputSchema);
  return typedTool({
    name,
    description,
    input,
    inputSchema,
    isOwn: true,
    readOnly: hints?.readOnly === true,
    about: (given) => JSON.stringify(given),
    run: async (given, context) =>
      context.own?.(name, original(given), context) ??
      failure(
        `This worker has no tool ${name} (LONGHAUL_TOOLS). The call was not made: go on without it, or say that it is missing.`,
      ),
  });
}
