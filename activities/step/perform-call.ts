/** How a claimed call is performed: in the sandbox, by the session's servers or by the operator's tools, until it ends or a person stops it. */
import type { ActivityScope } from "../runtime/activity-scope.ts";
import { progressNote } from "../contract/calls.ts";
import type { ToolCallPart } from "../contract/message.ts";
import type { ToolFacts } from "../contract/activities.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { createSessionMemory } from "../store/transcript-search.ts";
import { abortable } from "../sandbox/shared-work.ts";
import { listedNames, watchEgress } from "../workspace/egress.ts";
import { followCalls } from "../follow/answers.ts";
import type { SessionServices } from "../workspace/services.ts";
import type { SessionSandboxes } from "../workspace/session-sandbox.ts";
import type { Session } from "../store/sessions.ts";
import { callKey, type LedgerRow } from "../store/tool-calls.ts";
import { toolLimitsOf } from "../config/run-policy.ts";
import { findTool } from "../tools/index.ts";
import { sessionTools } from "../tools/session-tools.ts";
import { invokeTool, type InvokedTool } from "../tools/invoke.ts";
import { LeaveRunning, type McpCalls, type OwnCalls, type WebCalls } from "../tools/tool.ts";
import { randomUUID } from "node:crypto";
import type { McpServer } from "../config/mcp-settings.ts";
import type { McpCatalogue } from "../contract/tools.ts";
import { retryable } from "../contract/failures.ts";
import { readCallState, writeCallState, type CallState, type ListedTools } from "../mcp/mcp.ts";
import { questionId } from "../tools/permissions/approval.ts";
import { appendEvents } from "../store/events.ts";
import { keepFound, noteMcpState } from "../store/mcp.ts";
import { serverAnswers } from "../store/questions.ts";
import { callSpanId, traceOf, toTraceparent } from "../store/traces.ts";
import { noteListed, connectedFacts } from "./catalogues.ts";
import { fetchPage } from "../web/fetch-page.ts";
import { callOwnTool } from "../tools/own/own-tools.ts";

export interface CallInHand {
  readonly session: Session;
  readonly call: ToolCallPart;
  readonly row: LedgerRow;
}

export type Invoked = InvokedTool & Pick<ToolFacts, "asksForDomains">;

interface CallToRun extends CallInHand {
  readonly fence: number;
  readonly resumed: boolean;
  /** Resolves when no save is in progress. */
  readonly saved: Promise<void>;
}

interface Places {
  readonly sandboxes: SessionSandboxes;
  readonly services: SessionServices | undefined;
}

export async function performCall(
  deps: AgentDeps,
  { sandboxes, services }: Places,
  scope: ActivityScope,
  { session, call, row, fence, resumed, saved }: CallToRun,
): Promise<Invoked> {
  const tools = sessionTools(deps.tools, session);
  const tool = findTool(tools, call.toolName);
  const { signal, stopped } = stopOfCall(scope);
  const egress = watchEgress(deps, session, row.step);
  // A call does not start while a save is in progress, which would get half of its changes. A stop ends either wait.
  const sandbox = async () => {
    await abortable(saved, signal);
    const opened = await sandboxes.open(session, row.step, signal);
    await egress.begin(opened.sandbox);
    return opened.sandbox;
  };
  const context = {
    callKey: callKey(row),
    resumed,
    claimedIn: row.container ?? undefined,
    sandbox,
    services: services?.ofCall(session, row.step, sandbox, signal),
    limits: toolLimitsOf(session.config, tool?.name ?? call.toolName),
    signal,
    memory: createSessionMemory(deps.store.db, session.id),
    maskWindow: (text: string, from: number, to: number) => deps.sanitizer.maskWindow(text, from, to),
    mcp: mcpCalls(deps, session, { row, fence, runId: scope.runId }),
    own: ownCalls(deps, row),
    follow: session.config.repository?.follow?.on === true ? followCalls(deps, session, row) : undefined,
    web: webCalls(deps, session, row.step, egress),
    onProgress: (bytes: number, line: string | undefined) =>
      scope.note(progressNote(callKey(row), bytes, line)),
  };
  const running = invokeTool(tools, { ...call, name: call.toolName }, context, {
    clean: deps.sanitizer.clean,
  }).catch((error: unknown): InvokedTool => {
    if (!scope.stoppedByPerson()) throw error;
    return interrupted("The user stopped this call before it finished.");
  });
  try {
    const result = await Promise.race([running, stopped]);
    if (!signal.aborted) await services?.look(session, row.step);
    // The person who stopped the call does not wait for that.
    const note = signal.aborted ? undefined : await egress.end();
    if (note === undefined) return result;
    const asksForDomains = session.config.sandbox.askForDomains === true && egress.asks;
    return { ...result, text: `${result.text}\n${note}`, asksForDomains: asksForDomains || undefined };
  } finally {
    egress.stop();
  }
}

/**
 * How long a stopped call is waited for, in ms. It normally ends in less than half a second; this is ten times as long, for a busy
 * machine. After that the sandbox counts as not answering.
 */
const STOP_GRACE_MS = 5_000;
const UNCONFIRMED =
  "The user stopped this call, and the sandbox has not confirmed that it ended. Look at what it has done before you repeat it.";

/**
 * Only a person's stop ends the command. During a deploy or a pause the command continues, and the next attempt follows it.
 * @returns `stopped` settles when the call is no longer waited for; it rejects with the cancellation if the command continues
 */
function stopOfCall(scope: ActivityScope): {
  readonly signal: AbortSignal;
  readonly stopped: Promise<InvokedTool>;
} {
  const stop = new AbortController();
  const { promise: stopped, resolve, reject } = Promise.withResolvers<InvokedTool>();
  const onAbort = () => {
    if (scope.stoppedByPerson()) {
      stop.abort(scope.signal.reason);
      setTimeout(() => resolve(interrupted(UNCONFIRMED)), STOP_GRACE_MS).unref();
    } else {
      stop.abort(new LeaveRunning());
      scope.stopped().catch(reject);
    }
  };
  if (scope.signal.aborted) onAbort();
  scope.signal.addEventListener("abort", onAbort, { once: true });
  return { signal: stop.signal, stopped };
}

const interrupted = (text: string): InvokedTool => ({
  outcome: "interrupted",
  text,
  files: [],
  exitCode: undefined,
  truncated: false,
});

/** Of a call whose row is older than its claim, as after a restore. */
export const FORGOTTEN = "The record that this call had begun is lost";

/** For a call whose activity was completed or failed from outside, or whose claim is lost with what its server knew of it. */
export const lostCall = (why: string): InvokedTool => ({
  outcome: "unknown",
  text: `${why}, and how it ended is not known. It may have been run: look at what it changed before you repeat it.`,
  files: [],
  exitCode: undefined,
  truncated: false,
});

/** What a tool call may ask of the session's MCP servers. */
type McpDeps = Pick<AgentDeps, "mcp" | "store" | "sanitizer" | "telemetry">;

/** The attempt that has the tool call. */
interface Holder {
  readonly row: LedgerRow;
  readonly fence: number;
  readonly runId: string;
}

function mcpCalls(deps: McpDeps, session: Session, holder: Holder): McpCalls | undefined {
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
    async keepFound(tools) {
      const servers = [...new Set(tools.map(({ server }) => server))];
      for (const server of servers) {
        const names = tools.filter((tool) => tool.server === server).map(({ name }) => name);
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
      toTraceparent(await traceOf(store.db, session, runId), callSpanId(session.id, runId, callKey(row))),
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
  { store, sanitizer }: McpDeps,
  session: Session,
  { row: { step } }: Holder,
  { settings, catalogue }: { readonly settings: McpServer; readonly catalogue: McpCatalogue },
) {
  return {
    onListed: (listed: ListedTools) =>
      noteListed({ store, sanitizer }, session, catalogue, { ...listed, step }),
    onReconnected: async () => {
      const data = connectedFacts(catalogue.server, settings, catalogue);
      await appendEvents(store.db, session.id, session.epoch, [{ type: "mcp:connected", step, data }]);
    },
  };
}

/** The operator's own tools: how a session gets them, and how its calls reach them. */
function ownCalls({ ownTools }: Pick<AgentDeps, "ownTools">, row: LedgerRow): OwnCalls | undefined {
  if (ownTools === undefined) return undefined;
  const { sessionId, epoch, step, index } = row;
  const caller = { sessionId, idempotencyKey: `${sessionId}.e${epoch}s${step}c${index}` };
  return (name, input, context) => {
    const tool = ownTools.byName.get(name);
    return tool === undefined ? undefined : callOwnTool(tool, caller, input, context);
  };
}

/** The web, by the rules of the session's own network, with a record of each page. */
function webCalls(
  { web, store: { db } }: Pick<AgentDeps, "web" | "store">,
  session: Session,
  step: number,
  egress: Pick<ReturnType<typeof watchEgress>, "unlisted">,
): WebCalls | undefined {
  if (web === undefined) return undefined;
  const { network, allow } = session.config.sandbox;
  return {
    async readPage(url, { limits: { timeoutMs }, signal }) {
      const names = network === "listed" ? await listedNames(db, session) : [];
      const page = await fetchPage(web, { url, rules: { network, names, allow }, timeoutMs }, signal);
      if (page.ok) {
        const data = { host: page.url.host, bytes: page.bytes.length, status: page.status };
        await appendEvents(db, session.id, session.epoch, [{ type: "web:fetched", step, data }]);
      } else if (page.unlisted !== undefined) await egress.unlisted(page.unlisted);
      return page;
    },
  };
}
