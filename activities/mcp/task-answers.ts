/**
 * Answers that name a task instead of a result (SEP-2663). The protocol's client refuses kinds of results that it does not
 * know, so such an answer reaches it as a whole one, with the task among its metadata.
 */
import type { CallToolResult, JSONRPCMessage, Transport } from "@modelcontextprotocol/client";

/** The extension's identifier; with it a client says that it follows tasks. */
export const TASKS = "io.modelcontextprotocol/tasks";

/** A task as far as we go by it. */
export interface Task {
  readonly taskId: string;
  readonly status: string;
  readonly statusMessage?: string;
  readonly pollIntervalMs?: number;
}

/** The transport that passes on such answers. */
export function admitTasks<T extends Transport>(transport: T): T {
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
  const result = "result" in message ? (message.result as Record<string, unknown>) : undefined;
  if (result?.["resultType"] !== "task") return message;
  const { _meta: meta, resultType: _kind, ...task } = result;
  return {
    ...message,
    result: { resultType: "complete", content: [], _meta: { ...(meta as object), [TASKS]: task } },
  };
}

/** The task that does the call; undefined if this is its result. */
export function taskOf({ _meta: meta }: CallToolResult): Task | undefined {
  const task = meta?.[TASKS] as Task | undefined;
  return typeof task?.taskId === "string" ? task : undefined;
}
