/** Brings a server's answers into the form that the protocol's client accepts. */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { readableTools } from "./readable-tools.ts";
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
