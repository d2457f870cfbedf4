/** A tool's schema in the subset that a provider accepts: any other makes it refuse the whole request. The result only constrains less. */
import { isJsonObject, toObject, type JsonObject, referenced } from "../../text/json.ts";

/** Source: Google's reference, Schema; keywords that contain schemas are handled separately. */
const KNOWN = new Set([
  "default",
  "description",
  "example",
  "format",
  "maxItems",
  "maxLength",
  "maxProperties",
  "maximum",
  "minItems",
  "minLength",
  "minProperties",
  "minimum",
  "nullable",
  "pattern",
  "required",
  "title",
  "type",
]);

/**
 * For Google's compatible endpoint, which refuses unknown keywords. Source: its reference of `Schema`; public reports (models of
 * Gemini behind chat completions).
 */
export function toGoogleSchema(schema: unknown): Record<string, unknown> {
  if (!isJsonObject(schema)) return {};
  const { properties, items, enum: values, const: only, oneOf, anyOf = oneOf } = schema;
  const { type, ...known } = Object.fromEntries(Object.entries(schema).filter(([name]) => KNOWN.has(name)));
  const kinds = [type ?? []].flat().filter((kind) => kind !== "null");
  const isNullable = Array.isArray(type) && type.includes("null");
  const choices = [values ?? only ?? []].flat();
  return {
    ...known,
    // Google accepts only a single type.
    ...(kinds.length === 1 ? { type: kinds[0] } : {}),
    ...(isNullable ? { nullable: true } : {}),
    ...boundsOf(schema),
    ...(choices.length > 0 && choices.every((choice) => typeof choice === "string") ? { enum: choices } : {}),
    ...(items === undefined ? {} : { items: toGoogleSchema(items) }),
    ...(Array.isArray(anyOf) ? { anyOf: anyOf.map(toGoogleSchema) } : {}),
    ...(isJsonObject(properties) ? { properties: mapped(properties) } : {}),
  };
}

/** The keys are property names of the tool, not keywords. */
const mapped = (properties: JsonObject) =>
  Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, toGoogleSchema(value)]));

/** For integers `> 0` becomes `>= 1`; for other numbers the bound itself is allowed, and our own check refuses it. */
function boundsOf(schema: JsonObject): Record<string, unknown> {
  const step = schema["type"] === "integer" ? 1 : 0;
  const { exclusiveMinimum: above, exclusiveMaximum: below } = schema;
  return {
    ...(typeof above === "number" ? { minimum: above + step } : {}),
    ...(typeof below === "number" ? { maximum: below - step } : {}),
  };
}

/** Most that alternatives may repeat of what their schema shares with them; beyond it they are left out. Chosen: some 5,000 tokens. */
const MAX_REPEATED_CHARS = 20_000;
/** Of two types, it checks values against the first, and if that is a number's, against no other: so null comes first. */
const SCALARS = ["null", "boolean", "integer", "number", "string"];
const ANY = ["null", "boolean", "number", "string", "array", "object"];

/**
 * For Moonshot (Kimi). Source: its own validator, walle, at the level of its service ("lite"); public reports with its errors.
 * @param root without alternatives itself, as in all tools' schemas
 */
export const toMoonshotSchema = (root: JsonObject): Record<string, unknown> => new Adaptation(root).whole();

class Adaptation {
  readonly #root: JsonObject;
  /** Names of referenced schemas: references may only lead to `$defs` at the top level. */
  readonly #names = new Map<string, string>();
  #charsLeft = MAX_REPEATED_CHARS;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  whole(): Record<string, unknown> {
    const schema = this.#adapted(this.#root);
    const definitions: [string, unknown][] = [];
    // A map's iteration includes entries added during it.
    for (const [ref, name] of this.#names)
      definitions.push([name, this.#adapted(withoutSlashes(referenced(ref, this.#root)))]);
    return { ...schema, ...(definitions.length === 0 ? {} : { $defs: Object.fromEntries(definitions) }) };
  }

  #adapted(schema: unknown): JsonObject {
    if (!isJsonObject(schema)) return { type: ANY };
    const { $ref, description } = schema;
    if (typeof $ref === "string") {
      const reference = { $ref: this.#refTo($ref) };
      // Keywords beside a reference conflict with the same keywords in its target.
      return description === undefined ? reference : { anyOf: [reference], description };
    }
    const keywords = Object.entries(this.#withAlternatives(schema)).flatMap(([keyword, value]) => {
      const adapted = this.#inside(keyword, value);
      return adapted === undefined ? [] : [[keyword, adapted]];
    });
    return withType(withRequired(Object.fromEntries(keywords)));
  }

  #refTo(ref: string): string {
    if (ref === "#") return ref;
    let name = this.#names.get(ref);
    if (name === undefined) {
      const usedNames = new Set(this.#names.values());
      name = (ref.split("/").at(-1) ?? "").replaceAll(/[^a-zA-Z0-9_.-]/g, "_");
      while (usedNames.has(name)) name += "_";
      this.#names.set(ref, name);
    }
    return `#/$defs/${name}`;
  }

  /** @returns undefined for what is left out: other objects, where it refuses references */
  #inside(keyword: string, value: unknown): unknown {
    switch (keyword) {
      case "properties": {
        // A property named `$ref` would be taken for a reference.
        const properties = Object.entries(toObject(value)).filter(([name]) => name !== "$ref");
        return Object.fromEntries(properties.map(([name, property]) => [name, this.#adapted(property)]));
      }
      case "allOf":
      case "anyOf":
      case "prefixItems":
        return Array.isArray(value) ? value.map((branch) => this.#adapted(branch)) : undefined;
      case "items":
        return this.#adapted(value);
      case "additionalProperties":
        return typeof value === "boolean" ? value : this.#adapted(value);
      default:
        return isJsonObject(value) && keyword !== "const" ? undefined : value;
    }
  }

  /**
   * Beside alternatives Moonshot accepts no type, and no keyword that they have too: each alternative gets what they
   * share.
   */
  #withAlternatives(schema: JsonObject): JsonObject {
    const { oneOf, anyOf = oneOf, description, title, default: preset, ...shared } = schema;
    if (!Array.isArray(anyOf)) return schema;
    const about = { description, title, default: preset };
    this.#charsLeft -= JSON.stringify(shared).length * anyOf.length;
    if (this.#charsLeft < 0) return { ...shared, ...about };
    return { ...about, anyOf: anyOf.map((branch) => both(shared, toObject(branch))) };
  }
}

/** Names in a definition may not contain a slash. */
const withoutSlashes = (schema: unknown): unknown =>
  JSON.parse(
    JSON.stringify(schema ?? {}, (name, value: unknown) => (name.includes("/") ? undefined : value)),
  );

function both(shared: JsonObject, { default: _preset, ...branch }: JsonObject): JsonObject {
  const all = { ...shared, ...branch };
  if (!("properties" in all)) return all;
  const properties = { ...toObject(shared["properties"]), ...toObject(branch["properties"]) };
  return { ...all, properties, required: [shared["required"] ?? [], branch["required"] ?? []].flat() };
}

/** Required names that are not properties are refused, and by one report so is an object without a `required` list. */
function withRequired({ required, ...rest }: JsonObject): JsonObject {
  const { properties } = rest;
  if (!isJsonObject(properties)) return rest;
  const names = Array.isArray(required)
    ? required.filter((name) => Object.hasOwn(properties, String(name)))
    : [];
  return { ...rest, required: [...new Set(names)] };
}

/** Every schema gets a type, as Moonshot's documentation asks: without it, a definition counts as infinite. */
function withType({ const: only, enum: values, type, ...rest }: JsonObject): JsonObject {
  if ("anyOf" in rest) return rest;
  const choices = only === undefined ? values : [only];
  const types = typesOf(choices);
  if (types !== undefined) return { ...rest, type: types, enum: choices };
  return { ...rest, type: type ?? impliedType(rest) };
}

/** @returns undefined for values that it refuses: they are of one type, or of one and null */
function typesOf(values: unknown): string | readonly string[] | undefined {
  if (!Array.isArray(values)) return undefined;
  const kinds = new Set(values.map(kindOf));
  if (kinds.has("number")) kinds.delete("integer");
  const types = SCALARS.filter((type) => kinds.has(type));
  const [first = "", ...others] = types;
  if (types.length < kinds.size) return undefined;
  if (others.length === 0) return first;
  return first === "null" && others.length === 1 ? types : undefined;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Number.isInteger(value) ? "integer" : typeof value;
}

function impliedType(schema: JsonObject): string | readonly string[] {
  if ("properties" in schema) return "object";
  return "items" in schema || "prefixItems" in schema ? "array" : ANY;
}
