/** Brings a server's answers into the form that the protocol's client accepts. */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { isJsonObject, type JsonObject } from "../contract/json-object.ts";
import { wholeTask } from "./task-answers.ts";

/** The transport, with answers repaired that the client would refuse. */
export function admitAnswers<T extends Transport>(transport: T): T {
  let listener: Transport["onmessage"];
  Object.defineProperty(transport, "onmessage", {
    configurable: true,
    get: (): Transport["onmessage"] => listener && ((message, extra) => listener?.(admitted(message), extra)),
    set: (given: Transport["onmessage"]) => {
      listener = given;
    },
  });
  return transport;
}

function admitted<T extends JSONRPCMessage>(message: T): T {
  if (!("result" in message)) return message;
  const result = message.result as Readonly<Record<string, unknown>>;
  if (result["resultType"] === "task") return { ...message, result: wholeTask(result) };
  const { tools } = result;
  return Array.isArray(tools) ? { ...message, result: { ...result, tools: readableTools(tools) } } : message;
}

/**
 * A server's tools in the form that the protocol's client accepts: it refuses the whole list for one tool that the protocol does
 * not allow, such as one with a schema of alternatives without `type: object`. The schemas of results are left out: the client
 * would refuse a result that does not match, but the model can read it anyway.
 */
function readableTools(tools: readonly unknown[]): JsonObject[] {
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
