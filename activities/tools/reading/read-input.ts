/**
 * The one reader of what a model gives one of our own tools. Arguments for tools of MCP servers, and for the operator's own, are
 * sent as written: their schema judges.
 *
 * | written | read as |
 * |---|---|
 * | what the schema allows | itself, untouched |
 * | `null` or an empty text for an optional field; 0 where the least is 1 | absent |
 * | `"30"`, `"30.0"` for a number; `"false"`, `0` for yes or no; 30, `true` for a text | the value of the field's type |
 * | a list or object as JSON text | itself |
 * | `file_path`, `oldString`, `cmd`, `run_in_background` … (input-synonyms.ts) | our name, if the call lacks it and one field fits |
 * | `timeout: 120000`, `timeout_ms`, `"30s"` for seconds | seconds |
 * | `"In progress"` for the choice `in_progress` | the choice |
 * | `{"arguments": {…}}` alone | what is inside |
 * | any other field | left out, with a remark; refused where the call would do something else without it |
 */
import { z } from "zod";
import { isJsonObject, type JsonObject } from "../../text/json.ts";
import { shorten } from "../../text/cut.ts";
import type { Tool } from "../tool.ts";

export interface ReadInput {
  readonly input: unknown;
  /** What was left out or converted, as clauses. */
  readonly remarks: readonly string[];
  /** Why the call must not run, as sentences. */
  readonly refusals: readonly string[];
}

interface Schema {
  readonly type?: string | undefined;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
}

/** @param callInput an object; anything else is returned as it is, for the schema to refuse */
export function readInput(tool: Pick<Tool, "name" | "input">, callInput: unknown): ReadInput {
  if (!isJsonObject(callInput)) return { input: callInput, remarks: [], refusals: [] };
  const notes: Notes = { tool: tool.name, remarks: new Set(), refusals: new Set() };
  const schema = schemaOf(tool.input);
  const input = readObject(schema, unwrapped(schema, callInput), "", notes);
  return { input, remarks: [...notes.remarks], refusals: [...notes.refusals] };
}

interface Notes {
  readonly tool: string;
  readonly remarks: Set<string>;
  readonly refusals: Set<string>;
}

const schemas = new WeakMap<z.ZodType, Schema>();

function schemaOf(input: z.ZodType): Schema {
  const schema = schemas.get(input) ?? (z.toJSONSchema(input, { io: "input" }) as Schema);
  schemas.set(input, schema);
  return schema;
}

const WRAPPERS: ReadonlySet<string> = new Set([
  "arguments",
  "args",
  "input",
  "parameters",
  "params",
  "kwargs",
]);

/** Some models put the arguments into a field of their own, beside the tool's name. */
function unwrapped({ properties = {} }: Schema, callInput: JsonObject): JsonObject {
  const otherFields = Object.entries(callInput).filter(
    ([name]) => !["name", "tool", "tool_name"].includes(name),
  );
  const [only] = otherFields;
  if (only === undefined || otherFields.length > 1 || !WRAPPERS.has(only[0])) return callInput;
  if (Object.keys(callInput).some((name) => name in properties)) return callInput;
  const inside = asJson(only[1], "{");
  return isJsonObject(inside) ? inside : callInput;
}

function readObject(schema: Schema, callInput: JsonObject, fieldPath: string, notes: Notes): JsonObject {
  const { properties = {}, required = [] } = schema;
  const fields = new Map<string, unknown>();
  for (const [written, value] of namedFields(properties, callInput, fieldPath, notes)) {
    const field = properties[written];
    if (field === undefined) continue;
    const read = readValue(field, value, `${fieldPath}${written}`, notes);
    const isAbsent = !required.includes(written) && (read === null || read === "" || isBelow(field, read));
    if (!isAbsent) fields.set(written, read);
  }
  return Object.fromEntries(fields);
}

/** Zero where the least is one: models fill in optional numbers with it. */
const isBelow = ({ minimum, exclusiveMinimum }: Schema, value: unknown): boolean =>
  value === 0 && ((minimum ?? 0) > 0 || exclusiveMinimum === 0);

/** The fields under our names, in the order in which they were written; notes on those that are left out. */
function namedFields(
  properties: NonNullable<Schema["properties"]>,
  callInput: JsonObject,
  fieldPath: string,
  notes: Notes,
): ReadonlyMap<string, unknown> {
  const open = Object.keys(properties).filter((name) => (callInput[name] ?? null) === null);
  const fields = new Map<string, unknown>();
  const renamed = new Map<string, { readonly written: string; readonly value: unknown }>();
  for (const [written, value] of Object.entries(callInput)) {
    if (Object.hasOwn(properties, written)) {
      if (!renamed.has(written)) fields.set(written, value);
      continue;
    }
    if (value === null || value === undefined) continue;
    const field = fieldFor(open, fieldPath, squashed(written));
    const before = field === undefined ? undefined : renamed.get(field);
    if (field === undefined) leaveOut(written, value, fieldPath, notes);
    else if (before === undefined) {
      renamed.set(field, { written, value });
      fields.set(field, converted(field, written, value, notes));
    } else if (JSON.stringify(before.value) !== JSON.stringify(value))
      notes.refusals.add(`${before.written} and ${written} both mean ${fieldPath}${field}, and differ.`);
  }
  return fields;
}

/** The one field that a name means. The same name in another spelling comes before another name. */
function fieldFor(open: readonly string[], fieldPath: string, name: string): string | undefined {
  const same = open.filter((field) => squashed(field) === name);
  const means = (field: string) => (SYNONYMS[fieldPath + field] ?? SYNONYMS[field])?.includes(name) === true;
  const fitting = same.length > 0 ? same : open.filter(means);
  return fitting.length === 1 ? fitting[0] : undefined;
}

function leaveOut(
  written: string,
  value: unknown,
  fieldPath: string,
  { tool, remarks, refusals }: Notes,
): void {
  const name = shorten(written.replaceAll(/\s+/g, " "), 60);
  const says = value !== false && value !== "" && value !== 0;
  if (says && (NOT_TO_DROP[tool]?.includes(squashed(written)) === true || value === "append"))
    refusals.add(`${tool} has no ${fieldPath}${name}, and would do something else without it.`);
  else remarks.add(`${fieldPath}${name} was left out: ${tool} has no such argument`);
}

/** Source: the longest that a command may take, 600 s. More than this cannot be meant in seconds. */
const MOST_SECONDS = 1_000;
const UNITS: Readonly<Record<string, number>> = {
  ms: 0.001,
  s: 1,
  sec: 1,
  seconds: 1,
  m: 60,
  min: 60,
  minutes: 60,
};

/** Time limits of other tools are in milliseconds, or have a unit. */
function converted(field: string, written: string, value: unknown, { tool, remarks }: Notes): unknown {
  if (field !== "timeout_seconds") return value;
  const [, amount = String(value), unit] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/.exec(String(value)) ?? [];
  const isMs = /ms|milli/i.test(written) || (tool === "bash" && Number(amount) >= MOST_SECONDS);
  const seconds = Number(amount) * (UNITS[unit ?? (isMs ? "ms" : "s")] ?? Number.NaN);
  if (!Number.isFinite(seconds)) return value;
  if (seconds !== Number(value)) remarks.add(`${written} ${String(value)} was read as ${seconds} seconds`);
  return seconds;
}

function readValue(schema: Schema, value: unknown, fieldPath: string, notes: Notes): unknown {
  const { type = "" } = schema;
  if (type === "object") {
    const object = asJson(value, "{");
    return isJsonObject(object) ? readObject(schema, object, `${fieldPath}.`, notes) : value;
  }
  if (type === "array") {
    const list = asJson(value, "[");
    const item = schema.items ?? {};
    return Array.isArray(list) ? list.map((entry) => readValue(item, entry, fieldPath, notes)) : value;
  }
  if (type === "number" || type === "integer")
    return typeof value === "string" && /^\s*[+-]?\d+(?:\.\d+)?\s*$/.test(value) ? Number(value) : value;
  if (type === "boolean") return readBoolean(value);
  if (type !== "string") return value;
  const text = typeof value === "number" || typeof value === "boolean" ? String(value) : value;
  return schema.enum === undefined ? text : readChoice(schema.enum, text);
}

function readBoolean(value: unknown): unknown {
  const word = typeof value === "string" ? value.trim().toLowerCase() : value;
  if (word === "true" || word === 1) return true;
  return word === "false" || word === 0 ? false : value;
}

function readChoice(choices: readonly unknown[], value: unknown): unknown {
  if (typeof value !== "string" || choices.includes(value)) return value;
  const word = squashed(value);
  return choices.find((choice) => squashed(String(choice)) === word) ?? value;
}

/** A list or an object that was written as text. */
function asJson(value: unknown, opening: "{" | "["): unknown {
  if (typeof value !== "string" || !value.trimStart().startsWith(opening)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/**
 * By our name, or its place inside another field: others' names, without case, `-` and `_`. A name counts only where the tool has
 * the field and the call lacks it.
 */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  command: ["cmd", "commands", "shellcommand", "bashcommand", "commandline", "script"],
  timeout_seconds: [
    "timeout",
    "timeouts",
    "timeoutsec",
    "timeoutsecs",
    "timeoutms",
    "timeoutmillis",
    "timeoutmilliseconds",
  ],
  background: ["runinbackground", "isbackground", "inbackground", "async"],
  cwd: ["workdir", "workingdir", "workingdirectory", "dir", "directory", "dirpath", "folder", "path"],
  id: ["bashid", "shellid", "processid", "commandid", "taskid", "sessionid", "callid", "pid"],
  path: [
    "filepath",
    "filename",
    "file",
    "targetfile",
    "absolutepath",
    "relativepath",
    "relativeworkspacepath",
    "imagepath",
    "image",
    "dir",
    "dirpath",
    "directory",
    "directorypath",
    "targetdirectory",
    "folder",
    "folderpath",
    "searchpath",
  ],
  offset: ["startline", "lineoffset", "fromline", "start", "startoffset"],
  limit: ["maxlines", "numlines", "linecount", "lines", "length", "maxchars"],
  content: ["contents", "filecontent", "filecontents", "filetext", "text", "body"],
  "items.content": ["task", "title", "text", "description", "name", "step"],
  old_string: ["oldstr", "oldtext", "old", "search"],
  new_string: ["newstr", "newtext", "new", "replace", "replacement"],
  replace_all: ["all", "replaceallmatches", "allowmultiple"],
  patch: ["diff", "patchtext", "patchcontent", "input"],
  pattern: [
    "regex",
    "regexp",
    "regexpattern",
    "query",
    "search",
    "searchpattern",
    "glob",
    "globpattern",
    "filepattern",
  ],
  include: ["glob", "globpattern", "includepattern", "filepattern", "includes", "fileglob"],
  handle: ["outputid", "callid", "id"],
  query: ["q", "search", "searchterm", "keywords", "pattern", "words"],
  items: ["todos", "todolist", "tasks", "list"],
  question: ["prompt", "message", "text", "query"],
  options: ["choices", "answers"],
  task: ["prompt", "instructions", "message"],
  plan: ["text", "content"],
};

/** By tool: what it cannot do, and would do something else without. Such a call is refused. */
const NOT_TO_DROP: Readonly<Record<string, readonly string[]>> = {
  bash: ["env", "environment", "stdin", "user", "dryrun"],
  write_file: ["append", "startline", "endline", "insertline", "line", "dryrun"],
  edit_file: ["dryrun", "preview"],
  apply_patch: ["dryrun", "preview", "reverse"],
};

/** Without case and the marks between words. */
export const squashed = (name: string): string => name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, "");
