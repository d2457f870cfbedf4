/** The tools that MCP servers and the operator add to a session: taken once, so that its prompt does not change when a server does. */
import { isRemote, type McpServer } from "../config/mcp-settings.ts";
import type { McpCatalogue, McpToolEntry } from "../contract/tools.ts";
import { reasonOf } from "../contract/errors.ts";
import { fatal } from "../contract/failures.ts";
import type { RunPolicy } from "../contract/run-policy.ts";
import { cleanDeep } from "../text/clean.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { keepCatalogue, loadCatalogues, keepNext, takeNext } from "../store/mcp.ts";
import type { Session } from "../store/sessions.ts";
import { estimateTools } from "../contract/request-size.ts";
import { toolSpec } from "../tools/index.ts";
import { toMcpTools } from "../tools/mcp-tools.ts";
import { noteOwnTools } from "../store/session-settings.ts";
import { OWN_TOOLS } from "../tools/own/own-tools.ts";
import { createHash } from "node:crypto";
import type { ModelStepInput } from "../contract/activities.ts";
import { lastRound } from "../store/compactions.ts";

type ToolsDeps = Pick<AgentDeps, "store" | "sanitizer" | "mcp">;
type Named = readonly [name: string, settings: McpServer];

/**
 * Which servers a run's first step must ask for their tools, by where they are reached from.
 * @param isNew a new run asks again the servers that did not answer the previous run
 */
export function toolsToTake(
  session: Pick<Session, "config" | "catalogues">,
  isNew: boolean,
): RunPolicy["takesTools"] {
  const loaded = (session.catalogues ?? []).filter(({ failed }) => failed === undefined || !isNew);
  const due = missing(session, loaded);
  if (due.length === 0) return undefined;
  return due.every(([, settings]) => isRemote(settings)) ? "worker" : "sandbox";
}

function missing(
  { config }: Pick<Session, "config">,
  catalogues: readonly McpCatalogue[] | undefined,
): Named[] {
  if (config.noTools === true) return [];
  const serverNames = new Set(catalogues?.map(({ server }) => server));
  return Object.entries(config.mcpServers ?? {}).filter(([name]) => !serverNames.has(name));
}

/**
 * Before a run's first request: asks the servers over HTTP. The servers in the sandbox were asked when it was opened; a
 * server that was not asked then has no tools in this run.
 * @throws McpUnavailable (fatal) if a required server has no tools
 */
export async function takeServerTools(
  deps: ToolsDeps,
  scope: ActivityScope,
  session: Session,
  step: number,
): Promise<Session> {
  await take(deps, scope, session, {
    due: missing(session, session.catalogues),
    step,
    sandbox: undefined,
  });
  const catalogues = await loadCatalogues(deps.store.db, session.id);
  const lacking = catalogues.find(
    ({ server, failed }) => failed !== undefined && session.config.mcpServers?.[server]?.required === true,
  );
  if (lacking !== undefined)
    throw fatal(
      "McpUnavailable",
      `The MCP server ${lacking.server}, which this session requires, provides no tools: ${lacking.failed}. No model was asked. Try it with: longhaul mcp test ${lacking.server}`,
    );
  return { ...session, catalogues };
}

/** Asks the servers in a sandbox that was just opened. A server that does not answer is reported and fails nothing here. */
export async function takeSandboxTools(
  deps: ToolsDeps,
  scope: ActivityScope,
  session: Session,
  at: { readonly step: number; readonly sandbox: Sandbox },
): Promise<void> {
  const due = missing(session, session.catalogues).filter(([, settings]) => !isRemote(settings));
  await take(deps, scope, session, { due, ...at });
}

async function take(
  deps: ToolsDeps,
  scope: ActivityScope,
  session: Session,
  {
    due,
    step,
    sandbox,
  }: { readonly due: readonly Named[]; readonly step: number; readonly sandbox: Sandbox | undefined },
): Promise<void> {
  const events = await Promise.all(
    due.map(async ([name, settings]): Promise<NewEvent[]> => {
      const listed = await ask(deps, scope, { session, name, settings, sandbox });
      const message = "failed" in listed ? listed.failed : "";
      const isStored = await keepCatalogue(
        deps.store.db,
        session,
        "failed" in listed
          ? { server: name, era: "", tools: [], digest: "", failed: message }
          : { server: name, ...listed, digest: digestTools(listed.tools) },
      );
      if (!isStored) return [];
      if ("failed" in listed)
        return [
          { type: "mcp:failed", step, data: { server: name, message, required: settings.required } },
          ...loginNeeded(name, message).map((data) => ({ type: "mcp:login-needed" as const, step, data })),
        ];
      return [{ type: "mcp:connected", step, data: connectedFacts(name, settings, listed) }];
    }),
  );
  if (events.flat().length === 0) return;
  await appendEvents(deps.store.db, session.id, session.epoch, events.flat());
}

/** What watchers are shown about a server that answers. */
export function connectedFacts(
  server: string,
  settings: McpServer,
  { era, tools }: Pick<McpCatalogue, "era" | "tools">,
) {
  const mcpTools = toMcpTools(server, settings, tools);
  return { server, era, tools: mcpTools.length, tokens: estimateTools(mcpTools.map(toolSpec)) };
}

async function ask(
  { mcp, sanitizer }: ToolsDeps,
  scope: ActivityScope,
  {
    session,
    name,
    settings,
    sandbox,
  }: {
    readonly session: Session;
    readonly name: string;
    readonly settings: McpServer;
    readonly sandbox: Sandbox | undefined;
  },
): Promise<{ readonly era: string; readonly tools: readonly McpToolEntry[] } | { readonly failed: string }> {
  if (mcp === undefined) return { failed: "this worker cannot reach MCP servers" };
  try {
    const { era, tools } = await mcp.list({ sessionId: session.id, name, settings }, sandbox, scope.signal);
    return { era, tools: cleanDeep(tools, sanitizer.clean) as readonly McpToolEntry[] };
  } catch (error) {
    // If the run ends or moves to another worker, the server has not failed.
    scope.signal.throwIfAborted();
    if (error instanceof Error && error.name === "SandboxLost") throw error;
    return { failed: sanitizer.clean(reasonOf(error)) };
  }
}

/** If a login is missing, the failure's reason contains the login command. */
function loginNeeded(server: string, message: string) {
  const command = `longhaul mcp login ${server}`;
  return message.includes(command) ? [{ server, command }] : [];
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

/** Equal for equal lists of tools. */
export const digestTools = (tools: readonly McpToolEntry[]): string =>
  createHash("sha256").update(JSON.stringify(tools)).digest("hex");

/**
 * Compares a server's list with the session's, and reports a difference once. The prompt keeps the old list, so that providers'
 * caches stay valid; the new one is applied when the prompt changes anyway: after a compaction, and when a person writes.
 */
export async function noteListed(
  { store, sanitizer }: Pick<AgentDeps, "store" | "sanitizer">,
  session: Pick<Session, "id" | "epoch">,
  current: McpCatalogue,
  listed: { readonly era: string; readonly tools: readonly McpToolEntry[]; readonly step: number },
): Promise<void> {
  const tools = cleanDeep(listed.tools, sanitizer.clean) as readonly McpToolEntry[];
  const digest = digestTools(tools);
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
}

const namesOf = (tools: readonly McpToolEntry[]) => tools.map(({ name }) => name);

/** The session with the lists that are applied at this step; the same one if there are none. */
export async function withChangedTools(
  { store }: Pick<AgentDeps, "store">,
  session: Session,
  { round }: Pick<ModelStepInput, "round">,
): Promise<Session> {
  const due = (session.catalogues ?? []).filter(
    ({ next }) => next !== undefined && (session.hasWaiting || (round !== undefined && round > next.round)),
  );
  if (due.length === 0) return session;
  await takeNext(
    store.db,
    session.id,
    due.map(({ server }) => server),
  );
  return { ...session, catalogues: await loadCatalogues(store.db, session.id) };
}
