/**
 * A tool's schema in the subset that Google's compatible endpoint reads; it refuses the whole request for a keyword it does
 * not know. Source: its reference of `Schema`; public reports (models of Gemini behind chat completions). Pure.
 */

/** Keywords whose absence changes nothing of what we check ourselves when a call comes. */
const UNKNOWN = new Set([
  "$schema",
  "$id",
  "$ref",
  "$defs",
  "additionalProperties",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "const",
  "propertyNames",
  "patternProperties",
]);

export function toGoogleSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(toGoogleSchema);
  if (typeof schema !== "object" || schema === null) return schema;
  const { properties, ...rest } = schema as Record<string, unknown>;
  const bounds = boundsOf(rest);
  const known = Object.entries(rest).filter(([keyword]) => !UNKNOWN.has(keyword));
  return {
    ...Object.fromEntries(known.map(([keyword, value]) => [keyword, toGoogleSchema(value)])),
    ...bounds,
    // The names here are a tool's own, whatever they are.
    ...(typeof properties === "object" && properties !== null
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, value]) => [name, toGoogleSchema(value)]),
          ),
        }
      : {}),
  };
}

/** `> 0` of whole numbers is `>= 1`; of others the bound itself is let through, and our own check refuses it. */
function boundsOf(schema: Record<string, unknown>): Record<string, unknown> {
  const step = schema["type"] === "integer" ? 1 : 0;
  const { exclusiveMinimum: above, exclusiveMaximum: below, const: only } = schema;
  return {
    ...(typeof above === "number" ? { minimum: above + step } : {}),
    ...(typeof below === "number" ? { maximum: below - step } : {}),
    ...(typeof only === "string" ? { enum: [only] } : {}),
  };
}
