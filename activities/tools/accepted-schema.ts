/**
 * Converts a foreign tool's JSON schema into one that every provider accepts: a single unsupported schema makes them
 * refuse the whole request. The result only constrains less; the tool's owner checks the arguments. Source: OpenAI's,
 * Anthropic's and Google's errors in reports on MCP tools.
 */
import { isJsonObject, toObject, type JsonObject, referenced } from "../text/json.ts";
import { createHash } from "node:crypto";
import { cutChars } from "../text/cut.ts";

/** Source: providers accept 64 characters in tool names; Anthropic has the same limit for argument names. */
const MAX_CHARS = 64;
const HASH_CHARS = 8;

/** A name that every provider accepts; a name that had to be changed gets a hash, so that no two become equal. */
export function acceptedName(name: string, unsafe: RegExp): string {
  const safe = name.replaceAll(unsafe, "_");
  if (safe === name && name !== "" && name.length <= MAX_CHARS) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, HASH_CHARS);
  return `${cutChars(safe, MAX_CHARS - HASH_CHARS - 1)}_${hash}`;
}

export interface AcceptedSchema {
  readonly inputSchema: Record<string, unknown>;
  /** Maps the arguments back to the names that the tool's owner uses. */
  readonly original: (input: Record<string, unknown>) => Record<string, unknown>;
}

/** Most schemas that are merged into one at the top level. */
const MAX_PARTS = 200;

export function acceptedSchema(schema: JsonObject): AcceptedSchema {
  const root = cleanSchema(schema);
  const object = merged(root, { root, enclosing: new Set(), budget: { parts: MAX_PARTS } });
  const properties = toObject(object["properties"]);
  const owners = new Map(Object.keys(properties).map((name) => [keyOf(name), name]));
  const original = (args: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(args).map(([name, value]) => [owners.get(name) ?? name, value]));
  // Clean again: the target of a reference may be gone.
  const inputSchema = cleanSchema({
    ...object,
    type: "object",
    properties: Object.fromEntries(Object.entries(properties).map(([name, value]) => [keyOf(name), value])),
    ...("required" in object ? { required: requiredOf(object).map((name) => keyOf(String(name))) } : {}),
  });
  return { inputSchema, original };
}

/** Source: Anthropic's refusal, "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'". */
const keyOf = (name: string): string => acceptedName(name, /[^a-zA-Z0-9_.-]/g);

interface Place {
  readonly root: JsonObject;
  /** The schemas that enclose this one; through references possibly also the schema itself. */
  readonly enclosing: ReadonlySet<JsonObject>;
  readonly budget: { parts: number };
}

/** The arguments of all alternatives, since the top level may not have any; what only some of them require is optional. */
function merged(schema: JsonObject, context: Place): JsonObject {
  const { root, enclosing, budget } = context;
  const { $ref, allOf, anyOf, oneOf, enum: _values, const: _value, not: _not, ...rest } = schema;
  budget.parts -= 1;
  if (budget.parts < 0 || enclosing.has(schema)) return rest;
  const inside = { ...context, enclosing: new Set([...enclosing, schema]) };
  const of = (list: unknown) =>
    (Array.isArray(list) ? list : []).filter(isJsonObject).map((part) => merged(part, inside));
  const all = [...of([referenced($ref, root)]), ...of(allOf)];
  const alternatives = [of(anyOf), of(oneOf)];
  const properties = new Map<string, unknown[]>();
  for (const part of [rest, ...all, ...alternatives.flat()])
    for (const [name, value] of Object.entries(toObject(part["properties"])))
      properties.set(name, [...(properties.get(name) ?? []), value]);
  const required = different([
    ...[rest, ...all].flatMap(requiredOf),
    ...alternatives.flatMap(([first = {}, ...others]) =>
      requiredOf(first).filter((name) => others.every((other) => requiredOf(other).includes(name))),
    ),
  ]);
  return {
    ...rest,
    properties: Object.fromEntries([...properties].map(([name, values]) => [name, anyOfThem(values)])),
    ...(required.length === 0 ? {} : { required }),
  };
}

function anyOfThem(values: readonly unknown[]): unknown {
  const [first, ...others] = different(values);
  return others.length === 0 ? first : { anyOf: [first, ...others] };
}

const requiredOf = ({ required }: JsonObject): readonly unknown[] =>
  Array.isArray(required) ? required : [];

/** Most nested schemas; deeper ones accept any value. Chosen: providers accept five to ten. */
const MAX_LEVELS = 32;

const TYPES = new Set<unknown>(["array", "boolean", "integer", "null", "number", "object", "string"]);
const MAPS = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);
const LISTS = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const SINGLE = new Set([
  "additionalProperties",
  "contains",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
]);
const isText = (value: unknown) => typeof value === "string";
const isFlag = (value: unknown) => typeof value === "boolean";
// In older drafts, `exclusiveMinimum` and `exclusiveMaximum` are flags that say whether the other bound itself is
// allowed.
const isNumber = (value: unknown) => typeof value === "number";
const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 0;
const isFilled = (value: unknown) => Array.isArray(value) && value.length > 0;
const VALUES = new Map([
  ...["$comment", "description", "format", "pattern", "title"].map((keyword) => [keyword, isText] as const),
  ...["deprecated", "readOnly", "uniqueItems", "writeOnly"].map((keyword) => [keyword, isFlag] as const),
  ...["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"].map(
    (keyword) => [keyword, isNumber] as const,
  ),
  ...["Contains", "Items", "Length", "Properties"].flatMap((of) => [
    [`max${of}`, isCount] as const,
    [`min${of}`, isCount] as const,
  ]),
  ["multipleOf", (value: unknown) => isNumber(value) && Number(value) > 0],
  ["enum", isFilled],
  ["examples", Array.isArray],
]);
/** Keywords for documents that refer to each other; a tool's schema stands alone. */
const OF_DOCUMENTS = new Set([
  "$anchor",
  "$dynamicAnchor",
  "$dynamicRef",
  "$id",
  "$recursiveAnchor",
  "$recursiveRef",
  "$schema",
  "$vocabulary",
]);
/** If one of these is present, properties that the schema requires may be described elsewhere. */
const COMBINING = ["$ref", "allOf", "anyOf", "oneOf"];

/** Removes what is not valid JSON schema, and adds what an array schema lacks. */
const cleanSchema = (schema: JsonObject): JsonObject => clean(schema, MAX_LEVELS, schema);

function clean(schema: JsonObject, levels: number, root: JsonObject): JsonObject {
  if (levels === 0) return {};
  const cleaned = (value: unknown) => (isJsonObject(value) ? clean(value, levels - 1, root) : value);
  const entries = Object.entries(schema).flatMap(([keyword, value]) => {
    const cleanedValue = keywordOf(keyword, value, { cleaned, root });
    return cleanedValue === undefined ? [] : [[keyword, cleanedValue] as const];
  });
  const keywords: JsonObject = Object.fromEntries(entries);
  const { properties, required } = keywords;
  return {
    ...keywords,
    ...(isArray(keywords) && keywords["items"] === undefined ? { items: {} } : {}),
    ...(isJsonObject(properties) &&
    Array.isArray(required) &&
    !COMBINING.some((keyword) => keyword in keywords)
      ? { required: required.filter((name) => Object.hasOwn(properties, String(name))) }
      : {}),
  };
}

const isArray = ({ type }: JsonObject) => type === "array" || (Array.isArray(type) && type.includes("array"));

interface Cleaning {
  readonly cleaned: (value: unknown) => unknown;
  readonly root: JsonObject;
}

/** @returns undefined if a provider would refuse the keyword */
function keywordOf(keyword: string, value: unknown, { cleaned, root }: Cleaning): unknown {
  const schemas = (list: readonly unknown[]) => list.filter(isSchema).map(cleaned);
  if (OF_DOCUMENTS.has(keyword)) return undefined;
  if (MAPS.has(keyword)) {
    const entries = isJsonObject(value)
      ? Object.entries(value).filter(([, property]) => isSchema(property))
      : undefined;
    return entries && Object.fromEntries(entries.map(([name, property]) => [name, cleaned(property)]));
  }
  if (LISTS.has(keyword)) return Array.isArray(value) && value.some(isSchema) ? schemas(value) : undefined;
  // A list of schemas comes from older drafts: one schema per position.
  if (keyword === "items" && Array.isArray(value))
    return value.some(isSchema) ? { anyOf: schemas(value) } : {};
  if (SINGLE.has(keyword)) return isSchema(value) ? cleaned(value) : undefined;
  switch (keyword) {
    case "$ref":
      return isSchema(referenced(value, root)) ? value : undefined;
    case "type":
      return typeOf(value);
    case "required":
      return Array.isArray(value) ? different(value.filter((name) => typeof name === "string")) : undefined;
    default:
      return VALUES.get(keyword)?.(value) === false ? undefined : value;
  }
}

function typeOf(value: unknown): unknown {
  if (!Array.isArray(value)) return TYPES.has(value) ? value : undefined;
  const types = different(value.filter((type) => TYPES.has(type)));
  return types.length === 0 ? undefined : types;
}

const isSchema = (value: unknown): boolean => isJsonObject(value) || typeof value === "boolean";

const different = <Value>(values: readonly Value[]): Value[] => [
  ...new Map(values.map((value) => [JSON.stringify(value), value])).values(),
];
