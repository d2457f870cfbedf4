/**
 * Converts a foreign tool's JSON schema into one that every provider accepts: a single unsupported schema makes them
 * refuse the whole request. The result only constrains less; the tool's owner checks the arguments. Source: OpenAI's,
 * Anthropic's and Google's errors in reports on MCP tools. Pure.
 */
import { isJsonObject, objectOf, type JsonObject, referenced } from "../text/json.ts";
import { acceptedName } from "./accepted-name.ts";
import { cleanSchema, different } from "./clean-schema.ts";

export interface AcceptedSchema {
  readonly inputSchema: Record<string, unknown>;
  /** Maps the arguments back to the names that the tool's owner uses. */
  readonly original: (given: Record<string, unknown>) => Record<string, unknown>;
}

/** Most schemas that are merged into one at the top level. Source: ours. */
const MAX_PARTS = 200;

export function acceptedSchema(given: JsonObject): AcceptedSchema {
  const whole = cleanSchema(given);
  const object = merged(whole, { root: whole, enclosing: new Set(), left: { parts: MAX_PARTS } });
  const named = objectOf(object["properties"]);
  const owners = new Map(Object.keys(named).map((name) => [keyOf(name), name]));
  const original = (args: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(args).map(([name, value]) => [owners.get(name) ?? name, value]));
  // Clean again: the target of a reference may be gone.
  const inputSchema = cleanSchema({
    ...object,
    type: "object",
    properties: Object.fromEntries(Object.entries(named).map(([name, value]) => [keyOf(name), value])),
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
  readonly left: { parts: number };
}

/** The arguments of all alternatives, since the top level may not have any; what only some of them require is optional. */
function merged(schema: JsonObject, place: Place): JsonObject {
  const { root, enclosing, left } = place;
  const { $ref, allOf, anyOf, oneOf, enum: _values, const: _value, not: _not, ...rest } = schema;
  left.parts -= 1;
  if (left.parts < 0 || enclosing.has(schema)) return rest;
  const inside = { ...place, enclosing: new Set([...enclosing, schema]) };
  const of = (list: unknown) =>
    (Array.isArray(list) ? list : []).filter(isJsonObject).map((part) => merged(part, inside));
  const all = [...of([referenced($ref, root)]), ...of(allOf)];
  const alternatives = [of(anyOf), of(oneOf)];
  const properties = new Map<string, unknown[]>();
  for (const part of [rest, ...all, ...alternatives.flat()])
    for (const [name, value] of Object.entries(objectOf(part["properties"])))
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
