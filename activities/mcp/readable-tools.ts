/**
 * A server's tools as the protocol's client reads them. It refuses the whole list for one that is not as the protocol says, such as
 * a schema of alternatives without `type: object`. Also without schemas of results: the client refuses a result that does not
 * fit its own, and the model reads it anyway. Pure.
 */
import { isJsonObject, type JsonObject } from "../contract/json-object.ts";

export function readableTools(tools: readonly unknown[]): JsonObject[] {
  return tools.filter(isJsonObject).flatMap((tool) => {
    const { name, title, description, inputSchema, annotations } = tool;
    // It could not be called.
    if (typeof name !== "string") return [];
    return [
      {
        name,
        ...(typeof title === "string" ? { title } : {}),
        ...(typeof description === "string" ? { description } : {}),
        inputSchema: objectSchema(inputSchema),
        ...(isJsonObject(annotations) ? { annotations: flagsOf(annotations) } : {}),
      },
    ];
  });
}

function objectSchema(schema: unknown): JsonObject {
  if (!isJsonObject(schema)) return { type: "object" };
  const { properties, required, $schema, ...rest } = schema;
  return {
    ...rest,
    ...(typeof $schema === "string" ? { $schema } : {}),
    ...(isJsonObject(properties) ? { properties } : {}),
    ...(Array.isArray(required) && required.every((name) => typeof name === "string") ? { required } : {}),
    type: "object",
  };
}

const flagsOf = (annotations: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(annotations).filter(([, value]) => typeof value === "boolean"));
