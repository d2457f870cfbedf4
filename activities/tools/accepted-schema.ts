/**
 * A foreign tool's JSON schema as every provider takes it: one that they refuse makes them refuse the whole request. What is
 * changed only says less; the tool's owner checks the arguments. Source: OpenAI's, Anthropic's and Google's errors in reports on
 * MCP tools. Pure.
 */
import { isJsonObject, type JsonObject } from "../contract/json-object.ts";
import { referenced } from "../contract/json-pointer.ts";
import { acceptedName } from "./accepted-name.ts";
import { cleanSchema, different } from "./clean-schema.ts";

export interface AcceptedSchema {
  readonly inputSchema: Record<string, unknown>;
  /** The arguments as the tool's owner calls them. */
  readonly original: (given: Record<string, unknown>) => Record<string, unknown>;
}

/** Schemas that become one at the top. Source: ours. */
const MAX_PARTS = 200;

export function acceptedSchema(given: JsonObject): AcceptedSchema {
  const whole = cleanSchema(given);
  const one = merged(whole, { root: whole, within: new Set(), left: { parts: MAX_PARTS } });
  const named = asMap(one["properties"]);
  const owners = new Map(Object.keys(named).map((name) => [keyOf(name), name]));
  const original = (args: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(args).map(([name, value]) => [owners.get(name) ?? name, value]));
  // Again: what a reference named may be gone.
  const inputSchema = cleanSchema({
    ...one,
    type: "object",
    properties: Object.fromEntries(Object.entries(named).map(([name, value]) => [keyOf(name), value])),
    ...("required" in one ? { required: requiredOf(one).map((name) => keyOf(String(name))) } : {}),
  });
  return { inputSchema, original };
}

/** Source: Anthropic's refusal, "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'". */
const keyOf = (name: string): string => acceptedName(name, /[^a-zA-Z0-9_.-]/g);

const asMap = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});

interface Place {
  readonly root: JsonObject;
  /** Those that it stands in, through references also itself. */
  readonly within: ReadonlySet<JsonObject>;
  readonly left: { parts: number };
}

/** The arguments of all alternatives, since none may stand at the top; what only some of them want is optional. */
function merged(schema: JsonObject, place: Place): JsonObject {
  const { root, within, left } = place;
  const { $ref, allOf, anyOf, oneOf, enum: _values, const: _value, not: _not, ...rest } = schema;
  left.parts -= 1;
  if (left.parts < 0 || within.has(schema)) return rest;
  const inside = { ...place, within: new Set([...within, schema]) };
  const of = (list: unknown) =>
    (Array.isArray(list) ? list : []).filter(isJsonObject).map((one) => merged(one, inside));
  const all = [...of([referenced($ref, root)]), ...of(allOf)];
  const alternatives = [of(anyOf), of(oneOf)];
  const properties = new Map<string, unknown[]>();
  for (const one of [rest, ...all, ...alternatives.flat()])
    for (const [name, value] of Object.entries(asMap(one["properties"])))
      properties.set(name, [...(properties.get(name) ?? []), value]);
  const required = different([
    ...[rest, ...all].flatMap(requiredOf),
    ...alternatives.flatMap(([first = {}, ...others]) =>
      requiredOf(first).filter((name) => others.every((one) => requiredOf(one).includes(name))),
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
