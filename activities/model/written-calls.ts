/**
 * Calls that a model wrote as the text of its answer, because its server did not recognise them: its template or its parser does not
 * fit the model. Only where the text is the call, or ends in its markup; what prose, a fence or backticks quote is left alone.
 */
import { isJsonObject, toObject } from "../text/json.ts";
import type { ToolSpec } from "../contract/tools.ts";
import { readLenient } from "../tools/reading/lenient-json.ts";
import { isInCode } from "./thoughts-in-text.ts";

interface WrittenCalls {
  readonly calls: readonly WrittenCall[];
  /** The calls are the whole text. */
  readonly isWhole: boolean;
}

interface WrittenCall {
  readonly toolName: string;
  /** An object, or text that is to be one. */
  readonly input: unknown;
}

/** A call that a form's reader has found, and where it ends. */
interface Found {
  readonly calls: readonly { readonly name: string; readonly input: unknown }[];
  readonly end: number;
}
type Read = (text: string, at: number, tools: Tools) => Found | undefined;
type Tools = ReadonlyMap<string, ToolSpec>;

/** @returns undefined if no call of one of the tools is written, or if it is only quoted */
export function writtenCalls(text: string, specs: readonly ToolSpec[]): WrittenCalls | undefined {
  const tools: Tools = new Map(specs.map((spec) => [plainName(spec.name), spec]));
  const plain = plainMarks(unfenced(text.trim()));
  for (const start of startsOf(plain, tools)) {
    const calls = callsFrom(plain, start, tools);
    if (calls !== undefined) return { calls, isWhole: start === 0 };
  }
  return undefined;
}

/** Marks in one spelling: DeepSeek's own bars, and the prefixes that servers put in front of Anthropic's form. */
const plainMarks = (text: string): string =>
  text
    .replaceAll("｜", "|")
    .replaceAll("▁", "_")
    .replaceAll(/<(\/?)\s*(?:\|+\s*DSML\s*\|+|antml:|minimax:)\s*/gi, "<$1");

/** A text that is nothing but fenced blocks, without their fences. */
function unfenced(text: string): string {
  if (!/^(?:```|~~~)/.test(text)) return text;
  const fence = /^(```+|~~~+)[^\n`]*\n(?:([\s\S]*?)\n)?[^\S\n]*\1[^\S\n]*$/gm;
  const bodies = [...text.matchAll(fence)].map(([, , body = ""]) => body);
  const isQuoting = bodies.some((body) => /^ {0,3}(?:```|~~~)/m.test(body));
  return isQuoting || text.replaceAll(fence, "").trim() !== "" ? text : bodies.join("\n").trim();
}

/** What calls begin with, and what stands around and between them. Source: templates and parsers of vLLM and SGLang. */
const OPENER =
  /<\|?(?:tool_calls?|function_calls?|tools|tool_code|tool_calls_section_begin|tool_calls?_begin|python_tag)\|?>|<invoke\s|<function=|\[TOOL_CALLS\]|<\|channel\|>|^(?:commentary\s+)?to=functions/g;
/** So many marks of a text are looked at, its last ones. Chosen: more than a model calls at once. */
const MAX_STARTS = 50;
/** Also the result that a model makes up for its own call. */
const AROUND =
  /(?:\s|[;,]|<(?<made>(?:tool|function)_(?:response|result|output)s?)>[\s\S]*?(?:<\/\k<made>>|$)|<\/?\|?\/?(?:tool_calls?|function_calls?|(?:tool|function)_(?:response|result|output)s?|tools|tool_code|assistant|s)\|?>|<\|(?:tool_calls?_section_(?:begin|end)|tool_calls_(?:begin|end)|python_tag|eom_id|eot_id|im_end|end_of_sentence|end_of_turn|call|end|start|endoftext)\|>|\[\/?TOOL_CALLS\])*/y;

function* startsOf(text: string, tools: Tools): Generator<number> {
  yield 0;
  const marks = [...text.matchAll(OPENER)].map(({ index }) => index);
  const tags = [...text.matchAll(/^(?:<([\w.-]+)>|Action:)/gm)].flatMap(({ index, 1: tag }) =>
    tag === undefined || tools.has(plainName(tag)) ? [index] : [],
  );
  const last = [...marks, ...tags].toSorted((a, b) => a - b).slice(-MAX_STARTS);
  for (const at of last) if (at > 0 && !isInCode(text, at)) yield at;
}

/** @returns the calls of which all text from here on consists, if all name a tool */
function callsFrom(text: string, start: number, tools: Tools): WrittenCall[] | undefined {
  const calls: WrittenCall[] = [];
  let at = start;
  for (;;) {
    AROUND.lastIndex = at;
    at += AROUND.exec(text)?.[0].length ?? 0;
    if (at >= text.length) return calls.length === 0 ? undefined : calls;
    const parsed = firstOf(text, at, tools);
    if (parsed === undefined || parsed.calls.length === 0 || parsed.end <= at) return undefined;
    for (const { name, input } of parsed.calls) {
      const toolName = tools.get(plainName(name))?.name;
      if (toolName === undefined) return undefined;
      calls.push({ toolName, input });
    }
    at = parsed.end;
  }
}

function firstOf(text: string, at: number, tools: Tools): Found | undefined {
  for (const read of FORMS) {
    const parsed = read(text, at, tools);
    if (parsed !== undefined) return parsed;
  }
  return undefined;
}

/** A form with the fields of a call in tags of their own. */
const tagged =
  (call: RegExp, field: RegExp): Read =>
  (text, at, tools) => {
    const match = matchAt(call, text, at);
    if (match === undefined) return undefined;
    const [whole, name = "", body = ""] = match;
    const schema = tools.get(plainName(name))?.inputSchema;
    const fields = [...body.matchAll(field)].map(({ groups = {} }) => {
      const { key = "", value = "", as }: { key?: string; value?: string; as?: string } = groups;
      return [key, valueOf(value, toObject(toObject(toObject(schema)["properties"])[key]), as)];
    });
    const rest = body.replaceAll(field, "").trim();
    const json = fields.length === 0 ? jsonAt(rest, 0) : undefined;
    if (rest !== "" && json?.end !== rest.length) return undefined;
    if (body === "" && !/<\/[^>]*>$/.test(whole)) return undefined;
    const input: unknown = json === undefined ? Object.fromEntries(fields) : json.value;
    return { calls: [{ name, input }], end: at + whole.length };
  };

/** A form with the name of a call before its arguments as JSON. */
const named =
  (head: RegExp, tail: RegExp): Read =>
  (text, at) => {
    const [begin, name = ""] = matchAt(head, text, at) ?? [];
    if (begin === undefined) return undefined;
    const json = jsonAt(text, at + begin.length);
    if (json === undefined) return undefined;
    const end = matchAt(tail, text, json.end)?.[0] ?? "";
    return { calls: [{ name, input: json.value }], end: json.end + end.length };
  };

const FORMS: readonly Read[] = [
  // Anthropic's, also DeepSeek's DSML and MiniMax's.
  tagged(
    /<invoke\s+name=["']?([^"'>\s]+)["']?\s*>([\s\S]*?)(?:<\/invoke>|$)/y,
    /<parameter\s+name=["']?(?<key>[^"'>\s]+)["']?(?:\s+string=["'](?<as>true|false)["'])?\s*>(?<value>[\s\S]*?)<\/parameter>/g,
  ),
  // Qwen-Coder's, and Llama's with JSON in it.
  tagged(
    /<function=["']?([^"'>\s]+)["']?>([\s\S]*?)(?:<\/function>|(?=<\/tool_call>)|$)/y,
    /<parameter=["']?(?<key>[^"'>\s]+)["']?>(?<value>[\s\S]*?)<\/parameter>/g,
  ),
  // GLM's.
  tagged(
    /([\w.-]+)\s*((?:<arg_key>[\s\S]*?<\/arg_key>\s*<arg_value>[\s\S]*?<\/arg_value>\s*)+)/y,
    /<arg_key>(?<key>[\s\S]*?)<\/arg_key>\s*<arg_value>(?<value>[\s\S]*?)<\/arg_value>/g,
  ),
  // DeepSeek's older one and Kimi's, OpenAI's open models', Mistral's.
  named(
    /<\|tool_call_begin\|>(?:function<\|tool_sep\|>)?([\w.-]+)(?::\d+)?\s*(?:<\|tool_sep\|>|<\|tool_call_argument_begin\|>)?\s*(?:```(?:json)?\s*)?/y,
    /\s*(?:```)?\s*<\|tool_call_end\|>/y,
  ),
  named(
    /(?:<\|start\|>assistant)?(?:<\|channel\|>)?\s*(?:commentary|analysis)?\s*to=([\w.-]+)\s*(?:<\|channel\|>commentary)?[^{[]*/y,
    /<\|call\|>/y,
  ),
  named(/([\w-]+)\s*(?:\[CALL_ID\]\s*\w+)?\s*\[ARGS\]\s*/y, /(?!)/y),
  named(/(?<=\[TOOL_CALLS\]\s*)([\w.-]+)\s*(?=\{)/y, /(?!)/y),
  // Agents that were taught by examples of ReAct.
  named(/Action:[ \t]*([\w.-]+)[ \t]*\r?\n\s*Action Input:\s*(?:```(?:json)?\s*)?/y, /\s*```/y),
  // The tool's own name as a tag.
  (text, at, tools) => {
    const [, tag = ""] = matchAt(/<([\w.-]+)>/y, text, at) ?? [];
    if (!tools.has(plainName(tag))) return undefined;
    const name = tag.replaceAll(".", "\\.");
    return tagged(
      new RegExp(`<(${name})>([\\s\\S]*?)</${name}>`, "y"),
      /<(?<key>[\w-]+)>(?<value>[\s\S]*?)<\/\k<key>>/g,
    )(text, at, tools);
  },
  // JSON, alone or in a list.
  (text, at) => {
    const json = jsonAt(text, at);
    const calls = json === undefined ? [] : [json.value].flat().map(callOf);
    if (json === undefined || calls.length === 0) return undefined;
    return {
      calls: calls.filter((call) => call !== undefined),
      end: calls.includes(undefined) ? at : json.end,
    };
  },
];

/** A call as an object of JSON. The fields of OpenAI's, Hermes', Llama's, Qwen's and LangChain's forms. */
function callOf(value: unknown): { readonly name: string; readonly input: unknown } | undefined {
  if (!isJsonObject(value)) return undefined;
  const of = isJsonObject(value["function"]) ? value["function"] : value;
  const name = ["name", "tool", "tool_name", "function", "function_name", "recipient_name"]
    .map((key) => of[key])
    .find((value) => typeof value === "string");
  const input = ["arguments", "parameters", "args", "input", "tool_input", "params"]
    .map((key) => of[key])
    .find((value) => isJsonObject(value) || typeof value === "string");
  return typeof name !== "string" || input === undefined ? undefined : { name, input };
}

/** A field's text as the tool's schema has it; its line breaks at both ends belong to the markup. */
function valueOf(text: string, schema: Readonly<Record<string, unknown>>, as: string | undefined): unknown {
  const bare = text.replace(/^\r?\n/, "").replace(/\r?\n[^\S\n]*$/, "");
  const types = [schema["type"]].flat();
  if (as === "true" || (as === undefined && (types.includes("string") || types[0] === undefined)))
    return bare;
  try {
    return JSON.parse(bare) as unknown;
  } catch {
    return bare;
  }
}

/** The value of JSON that begins here. Undefined if there is none; up to the text's end if its last brackets are missing. */
function jsonAt(text: string, at: number): { readonly value: unknown; readonly end: number } | undefined {
  if (!/[{[]/.test(text.charAt(at))) return undefined;
  const end = closingOf(text, at);
  try {
    const [read] = readLenient(text.slice(at, end), true);
    return read === undefined ? undefined : { value: read.value, end };
  } catch {
    return undefined;
  }
}

function closingOf(text: string, at: number): number {
  let depth = 0;
  for (const { 0: mark, index } of text.slice(at).matchAll(/"(?:[^"\\]|\\.)*"?|[{}[\]]/gs)) {
    if (mark === "{" || mark === "[") depth += 1;
    if (mark === "}" || mark === "]") depth -= 1;
    if (depth === 0) return at + index + 1;
  }
  return text.length;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

/** As tools are told apart however a model spells them; the reader of calls has the last word. */
const plainName = (name: string): string =>
  name
    .toLowerCase()
    .replace(/^(?:functions?|tools?|default_api)[.:]/, "")
    .replace(/:\d+$/, "")
    .replaceAll(/[^a-z0-9]/g, "");
