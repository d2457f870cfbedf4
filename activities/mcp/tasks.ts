/** A server's task that does a call: followed to its end, whichever worker began it. */
import { setTimeout } from "node:timers/promises";
import { ProtocolError, type CallToolResult, type Client } from "@modelcontextprotocol/client";
import { z } from "zod";
import type { McpServer } from "../config/mcp-settings.ts";
import { oneLine } from "../tools/paths.ts";
import { serverReason } from "./failures.ts";
import { McpFailure } from "./mcp.ts";
import { readCallResult } from "./results.ts";

/** The extension's identifier; with it a client says that it follows tasks. */
export const TASKS = "io.modelcontextprotocol/tasks";

/** What is read of a task. */
export interface Task {
  readonly taskId: string;
  readonly status: string;
  readonly statusMessage?: string;
  readonly pollIntervalMs?: number;
}

/**
 * An answer that names a task instead of a result (SEP-2663). The protocol's client refuses kinds of results that it does not know,
 * so such an answer is passed to it as a complete one, with the task in its metadata.
 * @param result of the kind `task`
 */
export function wholeTask(result: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { _meta: meta, resultType: _kind, ...task } = result;
  return { resultType: "complete", content: [], _meta: { ...(meta as object), [TASKS]: task } };
}

/** The task that does the call; undefined if this is its result. */
export function taskOf({ _meta: meta }: CallToolResult): Task | undefined {
  const task = meta?.[TASKS] as Task | undefined;
  return typeof task?.taskId === "string" ? task : undefined;
}

/** Poll interval, if the server suggests none, and its bounds. Source: the extension's own library, 1 s. */
const POLL_MS = { usual: 1_000, least: 50, most: 60_000 };
/** Chosen: a call that a person stopped is waited for 5 s. */
const CANCEL_MS = 2_000;

const anything = z.looseObject({});
const taskSchema = z.looseObject({
  status: z.string(),
  statusMessage: z.string().optional(),
  pollIntervalMs: z.number().optional(),
  inputRequests: z.record(z.string(), z.unknown()).optional(),
});

export type TaskEnd =
  | { readonly kind: "completed"; readonly result: CallToolResult }
  /** Its effect up to then is unknown. */
  | { readonly kind: "failed" | "cancelled"; readonly reason: string }
  | { readonly kind: "asks"; readonly requests: Readonly<Record<string, unknown>> }
  /** The server does not know it any more, or is silent, or it takes too long. */
  | { readonly kind: "lost"; readonly reason: string };

interface Follow {
  readonly settings: Pick<McpServer, "timeout" | "maxTimeout">;
  /** Keys of its requests that are answered. */
  readonly answered: readonly string[];
  readonly signal: AbortSignal;
  readonly onProgress: (note: string) => void;
}

/** Runs `body` with a client that is connected now. */
export type RequestOnce = <T>(body: (client: Client) => Promise<T>) => Promise<T>;

/** Polls until the task has ended or asks something. @throws the signal's reason */
export async function followTask(
  once: RequestOnce,
  taskId: string,
  { settings, answered, signal, onProgress }: Follow,
): Promise<TaskEnd> {
  const { timeout, maxTimeout } = settings;
  const begun = performance.now();
  let heard = begun;
  let pause = 0;
  for (;;) {
    await setTimeout(pause, undefined, { signal }).catch(() => signal.throwIfAborted());
    try {
      const request = { method: "tasks/get", params: { taskId } };
      const task = await once((client) => client.request(request, taskSchema, { timeout, signal }));
      heard = performance.now();
      onProgress(`task ${oneLine(`${task.status} ${task.statusMessage ?? ""}`, 150)}`);
      const end = endOf(task, answered);
      if (end !== undefined) return end;
      pause = Math.min(POLL_MS.most, Math.max(POLL_MS.least, task.pollIntervalMs ?? POLL_MS.usual));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ProtocolError || error instanceof McpFailure)
        return { kind: "lost", reason: serverReason(error) };
      // A server that is away for a moment keeps its tasks.
      if (performance.now() - heard > timeout) return { kind: "lost", reason: serverReason(error) };
      pause = POLL_MS.usual;
    }
    if (performance.now() - begun > maxTimeout) {
      await once((client) => cancelTask(client, taskId)).catch(() => undefined);
      return {
        kind: "lost",
        reason: `its task took longer than ${maxTimeout / 1_000} s (maxTimeout of this server), and was cancelled`,
      };
    }
  }
}

function endOf(task: z.infer<typeof taskSchema>, answered: readonly string[]): TaskEnd | undefined {
  const { status, statusMessage = "", inputRequests = {} } = task;
  switch (status) {
    case "completed": {
      const { result } = task;
      if (result === undefined) throw new McpFailure("its task has ended without a result");
      return { kind: "completed", result: readCallResult(result) };
    }
    case "failed": {
      const { error } = task as { readonly error?: { readonly message?: string } };
      return {
        kind: "failed",
        reason: `its task failed: ${oneLine(error?.message ?? statusMessage, 500)}`,
      };
    }
    case "cancelled":
      return {
        kind: "cancelled",
        reason: `its task was cancelled${statusMessage === "" ? "" : `: ${oneLine(statusMessage, 500)}`}`,
      };
    case "input_required": {
      const open = Object.entries(inputRequests).filter(([key]) => !answered.includes(key));
      return open.length === 0 ? undefined : { kind: "asks", requests: Object.fromEntries(open) };
    }
    default:
      return undefined;
  }
}

/** Sends answers. Sent twice they count once: their keys are the task's own. */
export async function updateTask(
  client: Client,
  taskId: string,
  inputResponses: Readonly<Record<string, object>>,
  limits: { readonly timeout: number; readonly signal: AbortSignal },
): Promise<void> {
  await client.request({ method: "tasks/update", params: { taskId, inputResponses } }, anything, limits);
}

/** Cancels it; whether it ends is up to the server. */
export async function cancelTask(client: Client, taskId: string): Promise<void> {
  const request = { method: "tasks/cancel", params: { taskId } };
  await client.request(request, anything, { timeout: CANCEL_MS }).catch(() => undefined);
}
