/** Removes from a foreign JSON schema what draft 2020-12, against which providers check it, does not allow. Pure. */

import { isJsonObject, type JsonObject, referenced } from "../text/json.ts";

/** Most nested schemas; deeper ones accept any value. Source: ours; providers accept five to ten. */
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
export const cleanSchema = (schema: JsonObject): JsonObject => clean(schema, MAX_LEVELS, schema);

function clean(schema: JsonObject, levels: number, root: JsonObject): JsonObject {
  if (levels === 0) return {};
  const cleaned = (value: unknown) => (isJsonObject(value) ? clean(value, levels - 1, root) : value);
  const entries = Object.entries(schema).flatMap(([keyword, value]) => {
    const kept = keywordOf(keyword, value, { cleaned, root });
    return kept === undefined ? [] : [[keyword, kept] as const];
  });
  const known: JsonObject = Object.fromEntries(entries);
  const { properties, required } = known;
  return {
    ...known,
    ...(isArray(known) && known["items"] === undefined ? { items: {} } : {}),
    ...(isJsonObject(properties) && Array.isArray(required) && !COMBINING.some((keyword) => keyword in known)
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
    const known = isJsonObject(value)
      ? Object.entries(value).filter(([, property]) => isSchema(property))
      : undefined;
    return known && Object.fromEntries(known.map(([name, property]) => [name, cleaned(property)]));
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
  const known = different(value.filter((type) => TYPES.has(type)));
  return known.length === 0 ? undefined : known;
}

const isSchema = (value: unknown): boolean => isJsonObject(value) || typeof value === "boolean";

export const different = <Value>(values: readonly Value[]): Value[] => [
  ...new Map(values.map((value) => [JSON.stringify(value), value])).values(),
];
