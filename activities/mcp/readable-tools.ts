/**
 * A server's tools in the form that the protocol's client accepts: it refuses the whole list for one tool that the protocol does
 * not allow, such as one with a schema of alternatives without `type: object`. The schemas of results are left out: the client
 * would refuse a result that does not match, but the model can read it anyway. Pure.
 */
import { isJsonObject, type JsonObject } from "../contract/json-object.ts";

export function readableTools(tools: readonly unknown[]): JsonObject[] {
  return tools.filter(isJsonObject).flatMap((tool) => {
    const { name, title, description, inputSchema, annotations } = tool;
    // A tool without a name could not be called.
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
