/**
 * Answers that name a task instead of a result (SEP-2663). The protocol's client refuses kinds of results that it does not
 * know, so such an answer is passed to it as a complete one, with the task in its metadata.
 */
import type { CallToolResult } from "@modelcontextprotocol/client";

/** The extension's identifier; with it a client says that it follows tasks. */
export const TASKS = "io.modelcontextprotocol/tasks";

/** What is read of a task. */
export interface Task {
  readonly taskId: string;
  readonly status: string;
  readonly statusMessage?: string;
  readonly pollIntervalMs?: number;
}

/** @param result of the kind `task` */
export function wholeTask(result: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { _meta: meta, resultType: _kind, ...task } = result;
  return { resultType: "complete", content: [], _meta: { ...(meta as object), [TASKS]: task } };
}

/** The task that does the call; undefined if this is its result. */
export function taskOf({ _meta: meta }: CallToolResult): Task | undefined {
  const task = meta?.[TASKS] as Task | undefined;
  return typeof task?.taskId === "string" ? task : undefined;
}
