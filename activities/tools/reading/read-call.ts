/** Reads a call as the model meant it, and says what is wrong with one that cannot be read. */
import type { ToolCallPart } from "../../contract/message.ts";
import { findTool, type ToolRegistry } from "../index.ts";
import { readArguments } from "./read-arguments.ts";
import { readInput, squashed } from "./read-input.ts";
import { z } from "zod";
import type { Tool } from "../tool.ts";

export type WrittenCall = Pick<ToolCallPart, "toolName" | "input" | "remark" | "unread">;

/**
 * What a call means, as it is stored, shown, judged by rules and run. Reading it again changes nothing.
 * @param isCut the provider ended the answer before the model did
 */
export function readCall(registry: ToolRegistry, call: WrittenCall, isCut = false): WrittenCall {
  const toolName = readName(registry, call.toolName);
  const tool = findTool(registry, toolName);
  if (tool === undefined || call.unread !== undefined) return { ...call, toolName };
  const read = typeof call.input === "string" ? readArguments(call.input, isCut) : { input: call.input };
  if ("reason" in read) return { ...call, toolName, unread: read.reason };
  if (tool.server !== undefined || tool.isOwn === true) return { ...call, toolName, input: read.input };
  const { input, remarks, refusals } = readInput(tool, read.input);
  if (refusals.length > 0) return { ...call, toolName, input: read.input, unread: refusals.join(" ") };
  return {
    ...call,
    toolName,
    input,
    ...(remarks.length === 0 ? {} : { remark: remarks.join("; ") }),
  };
}

/** What templates and other agents put in front of names. */
const PREFIX =
  /^(?:to=|mcp__|(?:functions?|default_api|tools?|namespace|assistant|commentary|mcp|api)(?:[.:/]|__))/i;
const QUOTED = /^["'`\s]+|["'`\s]+$/g;

/**
 * The one reader of a tool's name as a model wrote it.
 *
 * | written | read as |
 * |---|---|
 * | a name of a tool | itself, untouched |
 * | `bash<|channel|>commentary`, `bash</tool>` | what is before the mark |
 * | `functions.bash`, `default_api:bash`, `tool.bash`, `mcp__server__tool`, `functions.bash:0` | without the prefix, without the number |
 * | `Bash`, `read-file`, `readFile`, `server.tool` | the one tool whose name has these letters and digits |
 * | a name that fits no tool, or several | itself: the call is answered with the names that there are |
 *
 * @returns the name of the one tool that is meant, or `written`
 */
export function readName(registry: ToolRegistry, written: string): string {
  if (findTool(registry, written) !== undefined) return written;
  const bare = withoutMarks(written);
  for (const name of [bare, ...withoutPrefixes(bare)]) {
    if (findTool(registry, name) !== undefined) return name;
    const fitting = alike(registry, name);
    if (fitting.length === 1) return fitting[0] ?? written;
    if (fitting.length > 1) return written;
  }
  return written;
}

const withoutMarks = (written: string): string =>
  (written.split("<")[0] ?? "")
    .replaceAll(QUOTED, "")
    .replace(/(?:\(\)|:\d+)$/, "")
    .replaceAll(QUOTED, "");

/** The name without its first prefix, its first two, and so on. */
function withoutPrefixes(name: string): string[] {
  const rest = name.replace(PREFIX, "");
  return rest === name || rest === "" ? [] : [rest, ...withoutPrefixes(rest)];
}

function alike(registry: ToolRegistry, name: string): string[] {
  const letters = squashed(name);
  return letters === "" ? [] : [...registry.keys()].filter((known) => squashed(known) === letters);
}

/** What is wrong with a call that could not be read, and an example of a valid input. */
export function describeUnread(
  tool: Tool,
  { input, unread = "" }: Pick<WrittenCall, "input" | "unread">,
): string {
  return typeof input === "string"
    ? `The arguments of ${tool.name} are not valid JSON: ${unread}\nThe call was not made. ${shapeOf(tool)}`
    : wrong(tool, [unread]);
}

/** What is wrong with a tool call's input, what was expected, and an example of a valid input. */
export function describeInput(tool: Tool, error: z.ZodError, remark?: string): string {
  const issues = error.issues.slice(0, 5).map((issue) => {
    const field = issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
    return `${field}${issue.message}`;
  });
  return wrong(tool, remark === undefined ? issues : [...issues, remark]);
}

const wrong = (tool: Tool, issues: readonly string[]): string =>
  [
    `The arguments of ${tool.name} are wrong; the call was not made.`,
    ...issues.map((issue) => `- ${issue}`),
    shapeOf(tool),
  ].join("\n");

const shapeOf = (tool: Tool): string => `A correct call of ${tool.name} has this shape: ${exampleOf(tool)}`;

interface JsonSchema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
}

/** The input's shape in one line: `{"path": string, "offset"?: integer}`. */
function exampleOf(tool: Tool): string {
  return show(z.toJSONSchema(tool.input, { io: "input" }) as JsonSchema);
}

function show(schema: JsonSchema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `[${show(schema.items ?? {})}]`;
  if (schema.properties === undefined) return schema.type ?? "any";
  const required = new Set(schema.required);
  const fields = Object.entries(schema.properties).map(
    ([name, field]) => `"${name}"${required.has(name) ? "" : "?"}: ${show(field)}`,
  );
  return `{${fields.join(", ")}}`;
}
