/**
 * A tool's schema in the subset that Google's compatible endpoint reads; it refuses the whole request for a keyword it does
 * not know. Source: its reference of `Schema`; public reports (models of Gemini behind chat completions). Pure.
 */
import { isJsonObject, type JsonObject } from "../../contract/json-object.ts";

/** Source: Google's reference, Schema; those that have schemas in them are handled apart. */
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

export function toGoogleSchema(schema: unknown): Record<string, unknown> {
  if (!isJsonObject(schema)) return {};
  const { properties, items, enum: values, const: only, oneOf, anyOf = oneOf } = schema;
  const { type, ...known } = Object.fromEntries(Object.entries(schema).filter(([name]) => KNOWN.has(name)));
  const kinds = [type ?? []].flat().filter((one) => one !== "null");
  const isNullable = Array.isArray(type) && type.includes("null");
  const choices = [values ?? only ?? []].flat();
  return {
    ...known,
    // It takes one of them alone.
    ...(kinds.length === 1 ? { type: kinds[0] } : {}),
    ...(isNullable ? { nullable: true } : {}),
    ...boundsOf(schema),
    ...(choices.length > 0 && choices.every((one) => typeof one === "string") ? { enum: choices } : {}),
    ...(items === undefined ? {} : { items: toGoogleSchema(items) }),
    ...(Array.isArray(anyOf) ? { anyOf: anyOf.map(toGoogleSchema) } : {}),
    ...(isJsonObject(properties) ? { properties: mapped(properties) } : {}),
  };
}

/** The names here are a tool's own, whatever they are. */
const mapped = (properties: JsonObject) =>
  Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, toGoogleSchema(value)]));

/** `> 0` of whole numbers is `>= 1`; of others the bound itself is let through, and our own check refuses it. */
function boundsOf(schema: JsonObject): Record<string, unknown> {
  const step = schema["type"] === "integer" ? 1 : 0;
  const { exclusiveMinimum: above, exclusiveMaximum: below } = schema;
  return {
    ...(typeof above === "number" ? { minimum: above + step } : {}),
    ...(typeof below === "number" ? { maximum: below - step } : {}),
  };
}
