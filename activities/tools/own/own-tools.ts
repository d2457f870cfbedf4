/** The operator's own tools: loaded from a file, offered to sessions, and called. */
import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";
import { issueTexts } from "../../config/issue-text.ts";
import type { McpCatalogue, McpToolEntry } from "../../contract/tools.ts";
import { reasonOf } from "../../contract/errors.ts";
import { acceptedSchema } from "../accepted-schema.ts";
import {
  failure,
  typedTool,
  type Tool,
  accepted,
  LeaveRunning,
  ToolFailure,
  type ToolContext,
  type ToolResult,
} from "../tool.ts";
import { findTool, toolRegistry } from "../index.ts";
import { oneLine, workspacePath } from "../paths.ts";
import { SEARCH_TOOLS } from "../search-tools.ts";
import type { ToolDefinition, ToolSandbox } from "./define-tool.ts";
import { SandboxLost, type Sandbox } from "../../sandbox/sandbox.ts";
import { readBytes } from "../../sandbox/command-output.ts";
import { describeInput } from "../reading/read-call.ts";

/** Replaces a server's name among a session's catalogues; no server can have this name. */
export const OWN_TOOLS = ":own";

/** Chosen: as for a command; the longest that a command may take. */
const TIMEOUT_MS = 60_000;
const MAX_TIMEOUT_MS = 600_000;
/** Chosen: the tools are at the beginning of every request of every session. */
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
export function parseOwnTools(exported: unknown): OwnTools {
  if (!Array.isArray(exported))
    throw new Error("its default export is not a list: export default [defineTool({ … })]");
  if (exported.length > MAX_TOOLS)
    throw new Error(`it has ${exported.length} tools; at most ${MAX_TOOLS} are allowed`);
  const byName = new Map<string, OwnTool>();
  for (const [index, exportedTool] of (exported as unknown[]).entries()) {
    const tool = toolOf(exportedTool, index);
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

function toolOf(exportedTool: unknown, index: number): OwnTool {
  const parsed = definition.safeParse(exportedTool);
  const exportedName = (exportedTool as { readonly name?: unknown } | null)?.name;
  const which =
    typeof exportedName === "string"
      ? `the tool ${oneLine(exportedName, 80)}`
      : `tool ${index + 1} of the list`;
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
    about: (callInput) => JSON.stringify(callInput),
    run: async (callInput, context) =>
      context.own?.(name, original(callInput), context) ??
      failure(
        `This worker has no tool ${name} (LONGHAUL_TOOLS). The call was not made: go on without it, or say that it is missing.`,
      ),
  });
}

const MAX_BYTES = 1024 * 1024;
const GRACE_MS = 200;

const answer = z.union([
  z.string().transform((text) => ({ text })),
  z.object({ text: z.string(), isError: z.boolean().default(false) }),
]);

/** Identifies the call: the key for external services is the same for each attempt. */
export interface Caller {
  readonly sessionId: string;
  readonly idempotencyKey: string;
}

/**
 * Runs the tool. A call that may have started already is not repeated, unless the tool only reads.
 * @throws LeaveRunning if the worker ends; SandboxLost
 */
export async function callOwnTool(
  tool: OwnTool,
  caller: Caller,
  input: Record<string, unknown>,
  context: ToolContext,
): Promise<ToolResult> {
  const { name, readOnly } = tool;
  if (context.resumed && !readOnly)
    return unknownEnd(name, "the worker that ran it was lost before it had a result");
  const parsed = await tool.input.safeParseAsync(input);
  if (!parsed.success) return failure(describeInput(ownTool(tool.entry), parsed.error));
  const timeout = new AbortController();
  const signal = AbortSignal.any([context.signal, timeout.signal]);
  const timer = setTimeout(() => timeout.abort(new Error("the time of this call is over")), tool.timeoutMs);
  // On abort the tool is signalled, but its end is not awaited: the outcome is unknown either way.
  const aborted = Promise.withResolvers<undefined>();
  const onAbort = () => aborted.resolve(undefined);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    const sandbox = sandboxOf(context, signal);
    const running = (async () => tool.run(parsed.data, { ...caller, signal, sandbox }))();
    running.catch(() => undefined);
    const ended = await Promise.race([running, aborted.promise]);
    if (signal.aborted) return stopped(tool, context);
    const checked = answer.safeParse(ended);
    if (!checked.success)
      return failure(`${name} returned no answer: it must be a text, or {text, isError}.`);
    return checked.data;
  } catch (error) {
    if (error instanceof SandboxLost) throw error;
    if (signal.aborted) return stopped(tool, context);
    return failure(`${name} failed: ${reasonOf(error)}`);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

function stopped({ name, readOnly, timeoutMs }: OwnTool, { signal }: ToolContext): ToolResult {
  if (signal.reason instanceof LeaveRunning) throw signal.reason;
  if (signal.aborted)
    return {
      text: `The user stopped this call. What ${name} did until then may have taken effect.`,
      interrupted: true,
    };
  const why = `it took longer than ${timeoutMs / 1_000} s, and was asked to stop`;
  return readOnly ? failure(`${name} has no result: ${why}.`) : unknownEnd(name, why);
}

const unknownEnd = (name: string, why: string): ToolResult => ({
  unknown: true,
  text: `It is not known how this call of ${name} ended: ${why}. It may have happened. It was not made again: look at what it has done before you repeat it.`,
});

function sandboxOf(context: ToolContext, signal: AbortSignal): ToolSandbox {
  const open = (): Promise<Sandbox> => {
    signal.throwIfAborted();
    return context.sandbox();
  };
  return {
    async exec(command) {
      const sandbox = await open();
      const id = `${context.callKey}-${randomBytes(4).toString("hex")}`;
      const argv = ["bash", "-c", command];
      const ran = await sandbox
        .run({ id, argv, mergeOutput: true, maxOutputBytes: MAX_BYTES }, { signal })
        .catch((error: unknown) => {
          if (!signal.aborted) throw error;
          return undefined;
        });
      const state = ran === undefined || ran.kind === "running" ? await sandbox.kill(id, GRACE_MS) : ran;
      signal.throwIfAborted();
      if (state.kind === "refused")
        throw new ToolFailure(`The command could not be started in the sandbox: ${state.reason}`);
      const bytes = await readBytes(sandbox, { id, from: 0, length: Math.min(state.outKept, MAX_BYTES) });
      await sandbox.discard(id);
      return { output: bytes.toString("utf8"), exitCode: state.kind === "exited" ? state.exitCode : null };
    },
    async readFile(path) {
      const { files } = await open();
      const read = accepted(await files.read(workspacePath(path).relative, { maxBytes: MAX_BYTES }));
      return Buffer.from(read.bytes).toString("utf8");
    },
    async writeFile(path, text) {
      const { files } = await open();
      accepted(await files.write(workspacePath(path).relative, Buffer.from(text)));
    },
  };
}
