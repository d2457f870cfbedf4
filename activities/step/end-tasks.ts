/** Cancels tasks of MCP servers that no one waits for any more. */
import { log } from "@temporalio/activity";
import { reasonOf } from "../contract/errors.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import type { Session } from "../store/sessions.ts";
import type { LedgerRow } from "../store/tool-calls.ts";

/** Informs their servers, in parallel with the work: whether a task ends is up to the server. */
export function endTasks(
  { mcp }: Pick<AgentDeps, "mcp">,
  session: Pick<Session, "id" | "config">,
  calls: readonly Pick<LedgerRow, "mcpServer" | "mcpTask" | "step">[],
): void {
  for (const { mcpServer: name, mcpTask: task, step } of calls) {
    const settings = name === null ? undefined : session.config.mcpServers?.[name];
    if (mcp === undefined || name === null || task === null || settings === undefined) continue;
    mcp.cancelTask({ sessionId: session.id, name, settings }, task).catch((error: unknown) => {
      log.warn("a server could not be asked to cancel a task", {
        server: name,
        step,
        reason: reasonOf(error),
      });
    });
  }
}
