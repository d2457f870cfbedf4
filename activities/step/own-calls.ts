/** The operator's own tools: how a session gets them, and how its calls reach them. */
import type { AgentDeps } from "../runtime/deps.ts";
import { keepCatalogue, loadCatalogues } from "../store/mcp.ts";
import { noteOwnTools } from "../store/session-settings.ts";
import type { Session } from "../store/sessions.ts";
import type { LedgerRow } from "../store/tool-calls.ts";
import { callOwnTool } from "../tools/own/call-own-tool.ts";
import { OWN_TOOLS } from "../tools/own/own-tools.ts";
import type { OwnCalls } from "../tools/tool.ts";

export function ownCalls({ ownTools }: Pick<AgentDeps, "ownTools">, row: LedgerRow): OwnCalls | undefined {
  if (ownTools === undefined) return undefined;
  const { sessionId, epoch, step, index } = row;
  const caller = { sessionId, idempotencyKey: `${sessionId}.e${epoch}s${step}c${index}` };
  return (name, input, context) => {
    const tool = ownTools.byName.get(name);
    return tool === undefined ? undefined : callOwnTool(tool, caller, input, context);
  };
}

/**
 * A session takes the tools of the worker that opens it first, and keeps them: the prompt in front of its messages does
 * not change with a deploy. A session that was made from such a session takes them when it is opened.
 */
export async function takeOwnTools(
  { store, ownTools }: Pick<AgentDeps, "store" | "ownTools">,
  session: Session,
  isFirst: boolean,
): Promise<Session> {
  const isDue = isFirst || session.config.ownTools === true;
  const has = session.catalogues?.some(({ server }) => server === OWN_TOOLS) === true;
  if (ownTools === undefined || ownTools.byName.size === 0 || !isDue || has) return session;
  await store.db.transaction(async (tx) => {
    await keepCatalogue(tx, session, ownTools.catalogue);
    await noteOwnTools(tx, session.id);
  });
  const catalogues = await loadCatalogues(store.db, session.id);
  return { ...session, config: { ...session.config, ownTools: true }, catalogues };
}
