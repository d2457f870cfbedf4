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
 */
import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type JsonObject } from "../../text/json.ts";
import { Misread, readLenient } from "./lenient-json.ts";

export type ReadArguments =
  | { readonly input: JsonObject }
  /** Why there is none, as sentences. */
  | { readonly reason: string };

/** How often one JSON text may be inside another. Chosen: reports show it once. */
const MAX_LAYERS = 3;
const BEFORE_CHARS = 40;
const AFTER_CHARS = 20;

/** @param isCut the provider ended the answer: what is missing at the end was never written */
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
  const shown = (part: string) => part.replaceAll("\n", "⏎").toWellFormed();
  const before = `${from > 0 ? "…" : ""}${shown(text.slice(from, at))}`;
  return `There, after >>>: ${before}>>>${shown(text.slice(at, to))}${to < text.length ? "…" : ""}`;
}
