/** What a tool call may ask of the session's MCP servers. */
import { randomUUID } from "node:crypto";
import { retryable } from "../contract/failures.ts";
import { readState, writeState, type CallState } from "../mcp/call-state.ts";
import { questionId } from "../tools/permissions/approval.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { appendEvents } from "../store/events.ts";
import { keepFound, noteMcpState } from "../store/mcp.ts";
import type { Session } from "../store/sessions.ts";
import { serverAnswers } from "../store/questions.ts";
import { callKey, type LedgerRow } from "../store/tool-calls.ts";
import { callSpanId, traceOf, traceparentOf } from "../store/traces.ts";
import type { McpCalls } from "../tools/tool.ts";
import type { ListedTools } from "../mcp/mcp.ts";
import { noteListed } from "./changed-tools.ts";
import { connectedFacts } from "./server-tools.ts";

export function mcpCalls(
  {
    mcp,
    store,
    notifier,
    sanitizer,
    telemetry,
  }: Pick<AgentDeps, "mcp" | "store" | "notifier" | "sanitizer" | "telemetry">,
  session: Session,
  { row, fence, runId }: { readonly row: LedgerRow; readonly fence: number; readonly runId: string },
): McpCalls | undefined {
  if (mcp === undefined) return undefined;
  return {
    async call({ server: name, entry, isRepeatable }, input, context) {
      const settings = session.config.mcpServers?.[name];
      const catalogue = session.catalogues?.find(({ server }) => server === name);
      if (settings === undefined || catalogue === undefined)
        return { text: `The session has no server ${name}.`, isError: true };
      if (catalogue.next?.removed.includes(entry.name) === true)
        return {
          text: `The server ${name} does not offer ${entry.name} any more: it changed its tools, and the call was not made.`,
          isError: true,
        };
      const state = readState(row.mcpState);
      const call = {
        server: { sessionId: session.id, name, settings },
        era: catalogue.era,
        entry,
        input,
        isRepeatable,
        state,
        task: row.mcpTask ?? undefined,
        answers:
          state.asked === undefined
            ? new Map()
            : await serverAnswers(store.db, { ...row, epoch: session.epoch }),
        attempt: randomUUID(),
        traceparent:
          telemetry &&
          traceparentOf(await traceOf(store.db, session, runId), callSpanId(session.id, runId, callKey(row))),
        questionId: (number: number) => `${questionId(row)}q${number}`,
        keepState: async (next: CallState, task?: string) => {
          if (!(await noteMcpState(store.db, row, fence, { state: writeState(next), task })))
            throw retryable(
              "CallTaken",
              "Another attempt has claimed this call; this one sent nothing more. It is tried again.",
            );
        },
        onListed: (listed: ListedTools) =>
          noteListed({ store, notifier, sanitizer }, session, catalogue, { ...listed, step: row.step }),
        onReconnected: async () => {
          const data = connectedFacts(name, settings, catalogue);
          await appendEvents(store.db, session.id, session.epoch, [
            { type: "mcp:connected", step: row.step, data },
          ]);
          notifier.wake(session.id);
        },
      };
      return mcp.call(call, context);
    },
    async keepFound(found) {
      const servers = [...new Set(found.map(({ server }) => server))];
      for (const server of servers) {
        const names = found.filter((each) => each.server === server).map(({ name }) => name);
        await keepFound(store.db, session.id, server, names);
      }
    },
  };
}
