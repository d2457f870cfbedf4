/** What a tool call may ask of the session's MCP servers. */
import type { AgentDeps } from "../runtime/deps.ts";
import { appendEvents } from "../store/events.ts";
import { keepFound, noteMcpState } from "../store/mcp.ts";
import type { Session } from "../store/sessions.ts";
import type { LedgerRow } from "../store/tool-calls.ts";
import type { McpCalls } from "../tools/tool.ts";
import { connectedFacts } from "./server-tools.ts";

export function mcpCalls(
  { mcp, store, notifier }: Pick<AgentDeps, "mcp" | "store" | "notifier">,
  session: Session,
  row: LedgerRow,
): McpCalls | undefined {
  if (mcp === undefined) return undefined;
  return {
    async call({ server: name, entry, isRepeatable }, input, context) {
      const settings = session.config.mcpServers?.[name];
      const catalogue = session.catalogues?.find(({ server }) => server === name);
      if (settings === undefined || catalogue === undefined)
        return { text: `The session has no server ${name}.`, isError: true };
      const call = {
        server: { sessionId: session.id, name, settings },
        era: catalogue.era,
        entry,
        input,
        isRepeatable,
        state: row.mcpState ?? undefined,
        keepState: (state: string) => noteMcpState(store.db, row, state),
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
