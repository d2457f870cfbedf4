/** Which field of a request's body a provider's refusal is about, and the body without it. */
import { isJsonObject, toObject, type JsonObject } from "../../text/json.ts";
import type { ErrorFacts } from "../error-facts.ts";

/** A change of every later body for a server. */
export type FieldEdit =
  /** A setting, by its path from the top, such as `reasoning.effort`. */
  | { readonly type: "without"; readonly name: string }
  /** A field of messages, of their parts or of tools. */
  | { readonly type: "without-everywhere"; readonly name: string }
  | { readonly type: "renamed"; readonly name: string; readonly to: string }
  /** Answers need their reasoning, and get a blank if there is none. */
  | { readonly type: "with-reasoning"; readonly name: "reasoning_content" };

/** Without these there is no request, or none whose answer could be read. */
const NEEDED: ReadonlySet<string> = new Set(
  "model messages input contents tools system instructions systemInstruction stream anthropic_version generationConfig type".split(
    " ",
  ),
);
/** The conversation and the tools: of what is in them, only these fields of ours can be left out. */
const LISTS = ["messages", "input", "contents", "system", "tools"];
const SPARE: ReadonlySet<string> = new Set(
  "reasoning_content reasoning reasoning_details reasoning_text cache_control strict phase extra_content".split(
    " ",
  ),
);
/** Schemas and arguments are not ours to edit, whatever their fields are called. */
const CLOSED: ReadonlySet<string> = new Set(
  "parameters parametersJsonSchema input_schema inputSchema schema input arguments args response output".split(
    " ",
  ),
);

const OUTPUT_LIMIT = /^max_(?:completion_|output_)?tokens$|maxOutputTokens$/;

const UNKNOWN =
  /un(?:known|supported|recogni[sz]ed|expected|permitted)|not (?:\w+ )?(?:supported|permitted|allowed|recogni[sz]ed|accepted|available)|n[o']t support|\bextra|additional propert|forbidden|cannot find field|deprecated|no such|不支持|未知/i;
const MISSING =
  /\bmissing\b|\brequired\b|must (?:be (?:passed|provided|set|included|present)|include|contain|have)|缺少|必须/i;

/**
 * @param sent the refused body
 * @returns the change that the refusal asks for; undefined if it names no field that can be left out
 */
export function editFor({ text, param = "" }: ErrorFacts, sent: JsonObject): FieldEdit | undefined {
  // Validators end with the refused value, which may be any text.
  const message = text.replace(/['"]input['"]\s*:.*$/s, "");
  const isMissing = MISSING.test(message) && !UNKNOWN.test(message);
  if (isMissing && /reasoning_content/.test(`${param} ${message}`) && Array.isArray(sent["messages"]))
    return { type: "with-reasoning", name: "reasoning_content" };
  if (isMissing) return undefined;
  const fields = [...settingsOf(sent), ...spareOf(sent)];
  const edit = firstNamed(param, fields) ?? firstNamed(message, fields) ?? thinkingIn(message, fields);
  if (edit === undefined || !OUTPUT_LIMIT.test(edit.name)) return edit;
  // A limit that is too large has other remedies.
  if (!UNKNOWN.test(message)) return undefined;
  const isMessages = Array.isArray(sent["messages"]);
  if (!isMessages) return edit;
  if (edit.name === "max_completion_tokens") return { type: "renamed", name: edit.name, to: "max_tokens" };
  // Anthropic's wire requires it.
  return /max_completion_tokens/.test(message)
    ? { type: "renamed", name: edit.name, to: "max_completion_tokens" }
    : undefined;
}

/** Every setting by its path, those of settings too. */
function settingsOf(sent: JsonObject, above = "", depth = 3): FieldEdit[] {
  return Object.entries(sent).flatMap(([key, value]): FieldEdit[] => {
    if (LISTS.includes(key) || CLOSED.has(key)) return [];
    const name = above + key;
    const inner = isJsonObject(value) && depth > 0 ? settingsOf(value, `${name}.`, depth - 1) : [];
    return NEEDED.has(key) ? inner : [{ type: "without", name }, ...inner];
  });
}

function spareOf(sent: JsonObject): FieldEdit[] {
  const names = new Set<string>();
  for (const list of LISTS)
    walk(sent[list], (object) => Object.keys(object).forEach((key) => names.add(key)));
  return [...names].filter((name) => SPARE.has(name)).map((name) => ({ type: "without-everywhere", name }));
}

/** Every object within, but for schemas and arguments. */
function walk(value: unknown, see: (object: Record<string, unknown>) => void): void {
  if (Array.isArray(value)) for (const item of value) walk(item, see);
  else if (isJsonObject(value)) {
    see(value);
    for (const [key, inner] of Object.entries(value)) if (!CLOSED.has(key)) walk(inner, see);
  }
}

/** The field that is named first; of a path the last name. */
function firstNamed(message: string, fields: readonly FieldEdit[]): FieldEdit | undefined {
  const named = fields.flatMap((field) => {
    const leaf = field.name.split(".").at(-1) ?? "";
    const whole = field.name === leaf ? -1 : placeOf(message, field.name);
    const position = whole >= 0 ? whole : placeOf(message, leaf);
    return position < 0
      ? []
      : [{ field, place: position, length: whole >= 0 ? field.name.length : leaf.length }];
  });
  return named.toSorted((a, b) => a.place - b.place || b.length - a.length)[0]?.field;
}

function placeOf(message: string, name: string): number {
  // Google answers `thinking_level` to `thinkingLevel`.
  const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const either = snake === name ? escaped(name) : `(?:${escaped(name)}|${snake})`;
  const isWord = /^[a-z]+$/.test(name);
  const pattern = isWord ? asField(name) : `(?<![\\w.-])${either}(?![\\w-])|(?<=[.\\]])${either}(?![\\w-])`;
  return new RegExp(pattern, isWord ? "i" : "").exec(message)?.index ?? -1;
}

const escaped = (name: string): string => name.replaceAll(".", "\\.");

/** Such as `store` or `thinking`: words of any sentence, unless it is clear that a field is meant. */
function asField(word: string): string {
  return [
    `(?<=['"\`.])${word}(?=['"\`.:\\[\\]])`,
    `(?<=\\.)${word}\\b`,
    `^${word}(?=\\s*$|[.:])`,
    `(?<=\\b(?:parameters?|fields?|arguments?|propert(?:y|ies)|keys?|names?|options?|supplied|invalid|unsupported|unknown|unrecognized|unexpected)[: ]+)${word}\\b`,
    `\\b${word}(?= (?:is|was|are|parameter|field|option)\\b)`,
  ].join("|");
}

/** Source: Ollama, "… does not support thinking"; Claude's older models, "adaptive thinking is not supported on this model". */
function thinkingIn(message: string, fields: readonly FieldEdit[]): FieldEdit | undefined {
  if (
    !/\bthinking\b|\breasoning effort\b/i.test(message) ||
    !(UNKNOWN.test(message) || /invalid/i.test(message))
  )
    return undefined;
  const names = ["thinking", "reasoning_effort", "reasoning", "generationConfig.thinkingConfig"];
  return names
    .map((name) => fields.find((field) => field.type === "without" && field.name === name))
    .find((field) => field !== undefined);
}

/** @returns a body to which the changes were made; the same one if there are none */
export function editBody(body: JsonObject, edits: readonly FieldEdit[]): JsonObject {
  if (edits.length === 0) return body;
  const copy = structuredClone(body) as Record<string, unknown>;
  for (const edit of edits) {
    if (edit.type === "without") remove(copy, edit.name.split("."));
    else if (edit.type === "renamed") rename(copy, edit.name, edit.to);
    else if (edit.type === "with-reasoning") addReasoning(copy["messages"]);
    else for (const list of LISTS) walk(copy[list], (object) => void delete object[edit.name]);
  }
  return copy;
}

/** A setting whose last field goes is removed too: empty, some servers refuse it. */
function remove(object: Record<string, unknown>, [name = "", ...rest]: readonly string[]): void {
  const inner = object[name];
  if (rest.length > 0 && isJsonObject(inner)) remove(inner, rest);
  if (rest.length === 0 || (isJsonObject(inner) && Object.keys(inner).length === 0)) delete object[name];
}

function rename(body: Record<string, unknown>, name: string, to: string): void {
  if (!(name in body)) return;
  body[to] = body[name];
  delete body[name];
}

function addReasoning(messages: unknown): void {
  for (const message of Array.isArray(messages) ? messages : []) {
    const { role, reasoning, reasoning_content: own } = toObject(message);
    if (role !== "assistant" || (typeof own === "string" && own !== "")) continue;
    Object.assign(message as object, { reasoning_content: typeof reasoning === "string" ? reasoning : " " });
  }
}
