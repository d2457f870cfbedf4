/**
 * A foreign tool's JSON schema as every provider takes it: one that they refuse makes them refuse the whole request. What is
 * changed only says less; the tool's owner checks the arguments. Source: OpenAI's, Anthropic's and Google's errors in reports on
 * MCP tools. Pure.
 */
import { acceptedName } from "./accepted-name.ts";

type Schema = Readonly<Record<string, unknown>>;

export interface AcceptedSchema {
  readonly inputSchema: Record<string, unknown>;
  /** The arguments as the tool's owner calls them. */
  readonly original: (given: Record<string, unknown>) => Record<string, unknown>;
}

/** Of schemas in each other; what lies deeper is any value. Source: ours; providers take five to ten. */
const MAX_LEVELS = 32;
/** Of `allOf` in `$ref` and so on at the top. Source: ours; more of them could grow without end. */
const MAX_MERGES = 3;

const TYPES = new Set(["array", "boolean", "integer", "null", "number", "object", "string"]);
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
]);

export function acceptedSchema(given: Schema): AcceptedSchema {
  const whole = clean(given, MAX_LEVELS);
  const { properties, required, ...rest } = merged(whole, whole, MAX_MERGES);
  const named = asMap(properties);
  const owners = new Map(Object.keys(named).map((name) => [keyOf(name), name]));
  const original = (args: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(args).map(([name, value]) => [owners.get(name) ?? name, value]));
  const inputSchema = {
    properties: Object.fromEntries(Object.entries(named).map(([name, one]) => [keyOf(name), one])),
    ...(Array.isArray(required) ? { required: required.map((name) => keyOf(String(name))) } : {}),
    ...rest,
    type: "object",
  };
  return { inputSchema, original };
}

/** Source: Anthropic's refusal, "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'". */
const keyOf = (name: string): string => acceptedName(name, /[^a-zA-Z0-9_.-]/g);

const isMap = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const asMap = (value: unknown): Schema => (isMap(value) ? value : {});
const isSchema = (value: unknown): boolean => isMap(value) || typeof value === "boolean";

function cleaned(value: unknown, levels: number): unknown {
  return isMap(value) ? clean(value, levels - 1) : value;
}

/** Without what is no JSON schema, and with what an array lacks. */
function clean(schema: Schema, levels: number): Schema {
  if (levels === 0) return {};
  const entries = Object.entries(schema).flatMap(([keyword, value]) => {
    const kept = keywordOf(keyword, value, levels);
    return kept === undefined ? [] : [[keyword, kept] as const];
  });
  const known: Schema = Object.fromEntries(entries);
  return isArray(known) && known["items"] === undefined ? { ...known, items: {} } : known;
}

const isArray = ({ type }: Schema) => type === "array" || (Array.isArray(type) && type.includes("array"));

/** @returns undefined if a provider would refuse it */
function keywordOf(keyword: string, value: unknown, levels: number): unknown {
  const schemas = (list: readonly unknown[]) => list.filter(isSchema).map((one) => cleaned(one, levels));
  if (MAPS.has(keyword))
    return isMap(value)
      ? Object.fromEntries(
          Object.entries(value).flatMap(([name, one]) =>
            isSchema(one) ? [[name, cleaned(one, levels)]] : [],
          ),
        )
      : undefined;
  if (LISTS.has(keyword)) return Array.isArray(value) && value.some(isSchema) ? schemas(value) : undefined;
  // A list of them is of older drafts: one for each place.
  if (keyword === "items" && Array.isArray(value))
    return value.some(isSchema) ? { anyOf: schemas(value) } : {};
  if (SINGLE.has(keyword)) return isSchema(value) ? cleaned(value, levels) : undefined;
  switch (keyword) {
    case "type":
      return typeOf(value);
    case "required":
      return Array.isArray(value) ? value.filter((name) => typeof name === "string") : undefined;
    case "enum":
      return Array.isArray(value) && value.length > 0 ? value : undefined;
    case "exclusiveMinimum":
    case "exclusiveMaximum":
      // Of older drafts: whether the other bound counts itself.
      return typeof value === "number" ? value : undefined;
    default:
      return value;
  }
}

function typeOf(value: unknown): unknown {
  if (!Array.isArray(value)) return TYPES.has(String(value)) ? value : undefined;
  const known = value.filter((one) => TYPES.has(String(one)));
  return known.length === 0 ? undefined : known;
}

/** The arguments of all alternatives, since none may stand at the top; what only some of them want is optional. */
function merged(schema: Schema, root: Schema, merges: number): Schema {
  const { $ref, allOf, anyOf, oneOf, enum: _values, const: _value, not: _not, ...rest } = schema;
  if (merges === 0) return rest;
  const of = (list: unknown) =>
    (Array.isArray(list) ? list : []).filter(isMap).map((one) => merged(one, root, merges - 1));
  const all = [...of([referenced($ref, root)]), ...of(allOf)];
  const alternatives = [of(anyOf), of(oneOf)];
  const properties = new Map<string, unknown[]>();
  for (const one of [rest, ...all, ...alternatives.flat()])
    for (const [name, value] of Object.entries(asMap(one["properties"])))
      properties.set(name, different([...(properties.get(name) ?? []), value]));
  const required = different([
    ...[rest, ...all].flatMap(requiredOf),
    ...alternatives.flatMap(([first = {}, ...others]) =>
      requiredOf(first).filter((name) => others.every((one) => requiredOf(one).includes(name))),
    ),
  ]);
  return {
    ...rest,
    properties: Object.fromEntries(
      [...properties].map(([name, values]) => [name, values.length === 1 ? values[0] : { anyOf: values }]),
    ),
    ...(required.length === 0 ? {} : { required }),
  };
}

const requiredOf = ({ required }: Schema): readonly unknown[] => (Array.isArray(required) ? required : []);

const different = <Value>(values: readonly Value[]): Value[] => [
  ...new Map(values.map((value) => [JSON.stringify(value), value])).values(),
];

function referenced(ref: unknown, root: Schema): unknown {
  const [, map, name] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String(ref)) ?? [];
  return map === undefined || name === undefined ? undefined : asMap(root[map])[name];
}
