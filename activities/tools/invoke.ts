/** Runs one tool call, from its name and raw input to a bounded result. */
import { MAX_RESULT_CHARS } from "../config/run-policy.ts";
import { cutChars, truncateText } from "../text/cut.ts";
import { editDistance } from "../text/lists.ts";
import type { FilePart, ToolOutcome } from "../contract/message.ts";
import { changeRuns, cutStreams, type Streams } from "../text/streams.ts";
import { describeInput, describeUnread, readCall, type WrittenCall } from "./reading/read-call.ts";
import {
  failure,
  ToolFailure,
  type ServerAsks,
  type Tool,
  type ToolContext,
  type ToolResult,
} from "./tool.ts";
import { findTool, type ToolRegistry } from "./index.ts";
import { oneLine } from "./paths.ts";

export interface ToolCall extends Omit<WrittenCall, "toolName"> {
  readonly name: string;
}

export interface InvokedTool {
  readonly outcome: ToolOutcome;
  /** At most `limits.maxChars` characters, and never more than 120,000. */
  readonly text: string;
  readonly files: readonly FilePart[];
  readonly exitCode: number | undefined;
  /** Which parts of `text` a command wrote to which stream; absent if they were not kept apart. */
  readonly streams?: Streams;
  readonly truncated: boolean;
  /** The result is the state of a command that still runs. */
  readonly isLive?: boolean | undefined;
  readonly background?: ToolResult["background"] | undefined;
  readonly endedCommands?: ToolResult["endedCommands"] | undefined;
  /** The call has no result yet: its server must first ask a person something. */
  readonly asks?: ServerAsks;
  /** The whole output if `text` is only a part of it. `chars` is exact, or the number of bytes if that is cheaper. */
  readonly whole?: NonNullable<ToolResult["whole"]>;
}

export interface InvokeOptions {
  /** Cleans and masks before the cut, so that no partial secret remains at its edge. */
  readonly clean?: (text: string) => string;
}

/**
 * Runs one tool call. The model's mistakes and the tool's own failures are returned as results.
 * @throws what is not the tool's own: SandboxLost, the abort reason, a lost database.
 */
export async function invokeTool(
  registry: ToolRegistry,
  call: ToolCall,
  context: ToolContext,
  options: InvokeOptions = {},
): Promise<InvokedTool> {
  const result = await run(registry, call, context);
  const { text, streams } = changeRuns(result, options.clean ?? ((same) => same));
  const cut = truncateText(text, {
    maxChars: Math.min(context.limits.maxChars, MAX_RESULT_CHARS),
    handle: context.callKey,
    wholeChars: result.whole?.chars,
  });
  const fullText = result.whole ?? (cut.truncated ? wholeOf(text) : undefined);
  return {
    outcome: outcomeOf(result),
    text: cut.text,
    files: result.files ?? [],
    exitCode: result.exitCode,
    streams: streams && cut.truncated ? cutStreams(streams, cut.kept) : streams,
    truncated: cut.truncated,
    isLive: result.isLive,
    background: result.background,
    endedCommands: result.endedCommands,
    asks: result.asks,
    whole: fullText,
  };
}

async function run(registry: ToolRegistry, call: ToolCall, context: ToolContext): Promise<ToolResult> {
  const { name, ...written } = call;
  const read = readCall(registry, { ...written, toolName: name });
  const tool = findTool(registry, read.toolName);
  if (tool === undefined) return failure(unknownTool(registry, name));
  if (read.unread !== undefined) return failure(describeUnread(tool, read));
  const { remark } = read;
  const parsed = tool.input.safeParse(read.input);
  if (!parsed.success) return failure(describeInput(tool, parsed.error, remark));
  try {
    const result = await tool.run(parsed.data, context);
    return remark === undefined ? result : { ...result, text: `${result.text}\n[${remark}]` };
  } catch (error) {
    if (isToolsOwn(error)) return failure(ownFailure(tool, error));
    throw error;
  }
}

/** Whether the error is a tool's failure or a bug in its code: retrying the activity would only repeat it. */
const isToolsOwn = (error: unknown): error is Error =>
  [ToolFailure, TypeError, RangeError, SyntaxError, ReferenceError].some((kind) => error instanceof kind);

function ownFailure(tool: Tool, error: Error): string {
  if (error instanceof ToolFailure) return error.message;
  return `${tool.name} failed because of a bug in the tool (${oneLine(`${error.name}: ${error.message}`, 300)}). The same call will fail again: try another way.`;
}

function outcomeOf(result: ToolResult): ToolOutcome {
  if (result.unknown === true) return "unknown";
  if (result.interrupted === true) return "interrupted";
  return result.isError === true ? "error" : "completed";
}

function wholeOf(text: string): NonNullable<ToolResult["whole"]> {
  return {
    chars: text.length,
    pieces: async function* pieces() {
      yield text;
    },
  };
}

function unknownTool(registry: ToolRegistry, name: string): string {
  const short = cutChars(name, 80);
  const server = [...registry.values()].find((tool) => name.startsWith(`${tool.server}__`))?.server;
  if (server !== undefined)
    return `The server ${server} does not offer the tool "${oneLine(name, 80)}", or no longer does.`;
  const names = [...registry.keys()].toSorted(
    (left, right) => editDistance(short, left) - editDistance(short, right),
  );
  return `There is no tool "${oneLine(name, 80)}". Tools: ${names.join(", ")}.`;
}

/** At most 60 characters on one line that say what a call is about, even if its input is invalid. */
export function aboutCall(registry: ToolRegistry, call: ToolCall): string {
  const tool = findTool(registry, call.name);
  const parsed = tool?.input.safeParse(call.input);
  if (tool !== undefined && parsed?.success === true) return oneLine(tool.about(parsed.data), 60);
  return oneLine(typeof call.input === "string" ? call.input : (JSON.stringify(call.input) ?? ""), 60);
}
