/**
 * Converts a tool's schema to the subset that Google's compatible endpoint reads; an unknown keyword makes it refuse
 * the whole request. Source: its reference of `Schema`; public reports (models of Gemini behind chat completions).
 * Pure.
 */
import { isJsonObject, type JsonObject } from "../../contract/json-object.ts";

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
