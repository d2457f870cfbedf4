/** What a tool call may ask of the session's MCP servers. */
import { randomUUID } from "node:crypto";
import type { McpServer } from "../config/mcp-settings.ts";
import type { McpCatalogue } from "../contract/tools.ts";
import { retryable } from "../contract/failures.ts";
import { readCallState, writeCallState, type CallState, type ListedTools } from "../mcp/mcp.ts";
import { questionId } from "../tools/permissions/approval.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { appendEvents } from "../store/events.ts";
import { keepFound, noteMcpState } from "../store/mcp.ts";
import type { Session } from "../store/sessions.ts";
import { serverAnswers } from "../store/questions.ts";
import { callKey, type LedgerRow } from "../store/tool-calls.ts";
import { callSpanId, traceOf, traceparentOf } from "../store/traces.ts";
import type { McpCalls } from "../tools/tool.ts";
import { noteListed } from "./changed-tools.ts";
import { connectedFacts } from "./server-tools.ts";

type McpDeps = Pick<AgentDeps, "mcp" | "store" | "notifier" | "sanitizer" | "telemetry">;

/** The attempt that has the tool call. */
interface Holder {
  readonly row: LedgerRow;
  readonly fence: number;
  readonly runId: string;
}

export function mcpCalls(deps: McpDeps, session: Session, holder: Holder): McpCalls | undefined {
  const { mcp, store } = deps;
  if (mcp === undefined) return undefined;
  return {
    async call({ server: name, ...tool }, input, context) {
      const settings = session.config.mcpServers?.[name];
      const catalogue = session.catalogues?.find(({ server }) => server === name);
      if (settings === undefined || catalogue === undefined)
        return { text: `The session has no server ${name}.`, isError: true };
      if (catalogue.next?.removed.includes(tool.entry.name) === true)
        return {
          text: `The server ${name} does not offer ${tool.entry.name} any more: it changed its tools, and the call was not made.`,
          isError: true,
        };
      const ofServer = { server: { sessionId: session.id, name, settings }, era: catalogue.era };
      const ofCall = await heldCall(deps, session, holder);
      return mcp.call(
        {
          ...ofServer,
          ...tool,
          input,
          ...ofCall,
          ...serverNews(deps, session, holder, { settings, catalogue }),
        },
        context,
      );
    },
    async keepFound(found) {
      const servers = [...new Set(found.map(({ server }) => server))];
      for (const server of servers) {
        const names = found.filter((tool) => tool.server === server).map(({ name }) => name);
        await keepFound(store.db, session.id, server, names);
      }
    },
  };
}

/** What the ledger knows about a call, and functions that store more about it. */
async function heldCall({ store, telemetry }: McpDeps, session: Session, { row, fence, runId }: Holder) {
  const state = readCallState(row.mcpState);
  return {
    state,
    task: row.mcpTask ?? undefined,
    answers:
      state.asked === undefined ? new Map() : await serverAnswers(store.db, { ...row, epoch: session.epoch }),
    attempt: randomUUID(),
    traceparent:
      telemetry &&
      traceparentOf(await traceOf(store.db, session, runId), callSpanId(session.id, runId, callKey(row))),
    questionId: (number: number) => `${questionId(row)}q${number}`,
    keepState: async (next: CallState, task?: string) => {
      if (!(await noteMcpState(store.db, row, fence, { state: writeCallState(next), task })))
        throw retryable(
          "CallTaken",
          "Another attempt has claimed this call; this one sent nothing more. It is tried again.",
        );
    },
  };
}

/** Handles what a server reports about itself during a call. */
function serverNews(
  { store, notifier, sanitizer }: McpDeps,
  session: Session,
  { row: { step } }: Holder,
  { settings, catalogue }: { readonly settings: McpServer; readonly catalogue: McpCatalogue },
) {
  return {
    onListed: (listed: ListedTools) =>
      noteListed({ store, notifier, sanitizer }, session, catalogue, { ...listed, step }),
    onReconnected: async () => {
      const data = connectedFacts(catalogue.server, settings, catalogue);
      await appendEvents(store.db, session.id, session.epoch, [{ type: "mcp:connected", step, data }]);
      notifier.wake(session.id);
    },
  };
}
