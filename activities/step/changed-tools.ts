/**
 * Handles servers whose tools change while a session runs. The prompt keeps the old list, so that providers' caches stay valid;
 * the new list is applied when the prompt changes anyway: after a compaction, and when a person writes a message.
 */
import { createHash } from "node:crypto";
import type { ModelStepInput } from "../contract/activities.ts";
import type { McpCatalogue, McpToolEntry } from "../contract/tools.ts";
import { cleanDeep } from "../redaction/clean-deep.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { lastRound } from "../store/compactions.ts";
import { appendEvents } from "../store/events.ts";
import { keepNext, loadCatalogues, takeNext } from "../store/mcp.ts";
import type { Session } from "../store/sessions.ts";

export const digestOf = (tools: readonly McpToolEntry[]): string =>
  createHash("sha256").update(JSON.stringify(tools)).digest("hex");

/** Compares a server's list with the session's, and reports a difference once. */
export async function noteListed(
  { store, notifier, sanitizer }: Pick<AgentDeps, "store" | "notifier" | "sanitizer">,
  session: Pick<Session, "id" | "epoch">,
  current: McpCatalogue,
  listed: { readonly era: string; readonly tools: readonly McpToolEntry[]; readonly step: number },
): Promise<void> {
  const tools = cleanDeep(listed.tools, sanitizer.clean) as readonly McpToolEntry[];
  const digest = digestOf(tools);
  const isSame = digest === current.digest;
  if (isSame && current.next === undefined) return;
  const [before, after] = [namesOf(current.tools), namesOf(tools)];
  const removed = before.filter((name) => !after.includes(name));
  const added = after.filter((name) => !before.includes(name));
  const round = await lastRound(store.db, session.id);
  const next = isSame ? null : { digest, round, removed, era: listed.era, tools };
  if (!(await keepNext(store.db, session.id, current, next))) return;
  const data = { server: current.server, added, removed };
  await appendEvents(store.db, session.id, session.epoch, [{ type: "mcp:changed", step: listed.step, data }]);
  notifier.wake(session.id);
}

const namesOf = (tools: readonly McpToolEntry[]) => tools.map(({ name }) => name);

/** The session with the lists that are applied at this step; the same one if there are none. */
export async function withChangedTools(
  { store }: Pick<AgentDeps, "store">,
  session: Session,
  { guidance, parked, round }: Pick<ModelStepInput, "guidance" | "parked" | "round">,
): Promise<Session> {
  const isSaid = guidance.length > 0 || parked === true || session.hasWaiting;
  const due = (session.catalogues ?? []).filter(
    ({ next }) => next !== undefined && (isSaid || (round !== undefined && round > next.round)),
  );
  if (due.length === 0) return session;
  await takeNext(
    store.db,
    session.id,
    due.map(({ server }) => server),
  );
  return { ...session, catalogues: await loadCatalogues(store.db, session.id) };
}
