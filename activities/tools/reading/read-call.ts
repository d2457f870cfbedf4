/** Reads a call as the model meant it, and says what is wrong with one that cannot be read. */
import type { ToolCallPart } from "../../contract/message.ts";
import { findTool, type ToolRegistry } from "../index.ts";
import { readInput, squashed } from "./read-input.ts";
import { z } from "zod";
import type { Tool } from "../tool.ts";
import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type JsonObject } from "../../text/json.ts";
import { Misread, readLenient } from "./lenient-json.ts";

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
  return letters === "" ? [] : [...registry.keys()].filter((name) => squashed(name) === letters);
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

export type ReadArguments =
  | { readonly input: JsonObject }
  /** Why there is none, as sentences. */
  | { readonly reason: string };

/** How often one JSON text may be inside another. Chosen: reports show it once. */
const MAX_LAYERS = 3;
const BEFORE_CHARS = 40;
const AFTER_CHARS = 20;

/**
 * The one reader of a call's arguments where a model wrote them as text that is not a JSON object as it stands.
 *
 * | written | read as |
 * |---|---|
 * | a JSON object | itself, untouched |
 * | nothing, `null`, `[]` | `{}` |
 * | raw line breaks and tabs in a string; `\'`; a comma after the last item; comments | without them |
 * | `'text'`, `“text”`, `True`, `None`, a name without quotes | JSON's own form |
 * | `{}{…}`, the same object twice, a list of one object, JSON inside a JSON string | the one object |
 * | a fence, a mark of the model's template around it, closing brackets too many | without it |
 * | closing brackets too few | closed, unless the answer was cut |
 * | anything else | not at all: the reason, the line, the column and the text there |
 *
 * @param isCut the provider ended the answer: what is missing at the end was never written
 */
export function readArguments(text: string, isCut = false): ReadArguments {
  const strict = parsed(text);
  if (isJsonObject(strict)) return { input: strict };
  try {
    return { input: oneObject(text, isCut, MAX_LAYERS) };
  } catch (error) {
    if (!(error instanceof Misread)) throw error;
    if (isCut && error.isEnd)
      return {
        reason: `the answer reached its output limit here: they end after ${text.length} characters, in the middle. Write less in one call: a long file in parts, a long text in several calls.`,
      };
    return { reason: `${placeOf(text, error.at)}: ${error.message}\n${excerpt(text, error.at)}` };
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @throws Misread */
function oneObject(text: string, isCut: boolean, layers: number): JsonObject {
  const bare = withoutWrapping(text);
  const values = readLenient(bare, !isCut);
  // Nothing may have been meant, or nothing may have been written yet.
  if (values.length === 0 && isCut) throw new Misread("nothing was written", text.length, true);
  const filled = values.filter(({ value }) => !isNothing(value));
  const [first, ...others] = filled;
  if (first === undefined) return {};
  const other = others.find(({ value }) => !isDeepStrictEqual(value, first.value));
  if (other !== undefined)
    throw new Misread("a second value follows, which differs: one object is expected", other.at);
  const { value, at } = first;
  if (isJsonObject(value)) return value;
  if (Array.isArray(value) && value.length === 1 && isJsonObject(value[0])) return value[0];
  if (typeof value === "string" && layers > 1 && /^\s*[{["'`<]/.test(value)) {
    try {
      return oneObject(value, isCut, layers - 1);
    } catch (error) {
      if (!(error instanceof Misread)) throw error;
      throw new Misread(
        `${error.message} This is in the JSON inside this string, ${placeOf(value, error.at)}.`,
        at,
      );
    }
  }
  throw new Misread(
    `one object is expected, and this is ${Array.isArray(value) ? "a list" : `a ${typeof value}`}.`,
    at,
  );
}

const isNothing = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  (Array.isArray(value) && value.length === 0) ||
  (isJsonObject(value) && Object.keys(value).length === 0);

/** Marks of templates, and tags around a call. */
const MARK = String.raw`<\|[^|<>\n]{1,60}\|?>|<[|｜][^<>\n]{1,60}[|｜]>|</?(?:tool_call|tool_calls|function_call|function|arguments|parameters|invoke|s)>|\[/?(?:TOOL_CALLS?|INST)\]`;
const BEFORE = new RegExp(String.raw`^(?:\s|\uFEFF|${MARK})+`);
const AFTER = new RegExp(String.raw`(?:\s|${MARK})+$`);
/** Marks are looked for in this much of a text's end. */
const END_CHARS = 400;
const FENCE = /^(`{3,}|~{3,})[ \t]*[\w+-]*[ \t]*(?=\n|[{["'])/;

/** With blanks in place of what is around the JSON, so that places remain. */
function withoutWrapping(text: string): string {
  let bare = outside(text);
  const fence = FENCE.exec(bare.trimStart());
  const [opening, marks] = fence ?? [];
  if (opening !== undefined && marks !== undefined) {
    const begin = bare.indexOf(opening);
    bare = blank(bare, begin, begin + opening.length);
    const end = bare.trimEnd().length;
    if (bare.slice(end - marks.length, end) === marks) bare = blank(bare, end - marks.length, end);
    bare = outside(bare);
  }
  return bare;
}

function outside(text: string): string {
  const end = Math.max(0, text.length - END_CHARS);
  const after = end + (AFTER.exec(text.slice(end))?.index ?? text.length);
  const before = BEFORE.exec(text)?.[0].length ?? 0;
  return blank(blank(text, after, text.length), 0, before);
}

const blank = (text: string, from: number, to: number): string =>
  text.slice(0, from) + text.slice(from, to).replaceAll(/[^\n]/g, " ") + text.slice(to);

function placeOf(text: string, at: number): string {
  const lines = text.slice(0, at).split("\n");
  return `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`;
}

/** The text around a place, which a mark shows, as JSON strings write it. */
function excerpt(text: string, at: number): string {
  const from = Math.max(0, at - BEFORE_CHARS);
  const to = Math.min(text.length, at + AFTER_CHARS);
  const visible = (part: string) => part.replaceAll("\n", "⏎").toWellFormed();
  const before = `${from > 0 ? "…" : ""}${visible(text.slice(from, at))}`;
  return `There, after >>>: ${before}>>>${visible(text.slice(at, to))}${to < text.length ? "…" : ""}`;
}
