/** The workflow itself over activities that are called directly: a minimal replacement of Temporal's engine, without cancellation. */
import { ApplicationFailure, type WorkflowInfo } from "@temporalio/workflow";
import { vi } from "vitest";
import type { Guidance } from "../../activities/contract/guidance.ts";
import { codingAgent } from "../../workflows/coding-agent.ts";
import type { SessionView } from "../../workflows/messages.ts";
import type { DirectAgent } from "./direct-agent.ts";

type Handler = (...args: unknown[]) => unknown;
type Activity = (name: string, input: never) => Promise<unknown>;

/** Of the run being played: one at a time. */
const engine = vi.hoisted(() => ({
  info: {} as Partial<WorkflowInfo>,
  handlers: new Map<string, Handler>(),
  activity: undefined as Activity | undefined,
}));

vi.mock("@temporalio/workflow", async (importOriginal) => {
  const scope = { consideredCancelled: false, cancel: () => {}, cancelRequested: new Promise(() => {}) };
  const run = (body: () => unknown) => body();
  const method = (name: string) => {
    const call = (input: never) => engine.activity?.(name, input);
    return Object.assign(call, {
      executeWithOptions: (_options: unknown, [input]: never[]) => call(input as never),
    });
  };
  return {
    ...(await importOriginal<object>()),
    CancellationScope: { cancellable: run, nonCancellable: run, current: () => scope },
    proxyActivities: () => new Proxy({}, { get: (_, name) => method(String(name)) }),
    workflowInfo: () => engine.info,
    setHandler: ({ name }: { name: string }, handler: Handler) => engine.handlers.set(name, handler),
    setCurrentDetails: () => {},
    upsertSearchAttributes: () => {},
  };
});

export interface LoopEnd {
  /** The session's status, or the type of the failure that ended the run. */
  readonly status: string;
  readonly state: { readonly step: number; readonly round: number; readonly usedTokens: number };
  readonly prunes: number;
}

/** Sandbox activities do nothing: the sandbox is a folder, which stays. */
const NO_SANDBOX: ReadonlyMap<string, object> = new Map([
  ["openSandbox", { container: "folder" }],
  ["saveWorkspace", { changed: 0, bytes: 0 }],
  ["closeSandbox", { changed: 0, bytes: 0 }],
]);

/**
 * Plays a session to its end.
 * @param options.guidanceAt messages that arrive before a step
 */
export async function playLoop(
  agent: DirectAgent,
  { guidanceAt }: { readonly guidanceAt?: (step: number) => readonly Guidance[] } = {},
): Promise<LoopEnd> {
  let prunes = 0;
  const say = (step: number) => {
    for (const message of guidanceAt?.(step) ?? []) engine.handlers.get("guidance")?.(message);
  };
  engine.handlers.clear();
  engine.info = {
    runId: agent.runId,
    firstExecutionRunId: agent.runId,
    runStartTime: new Date(),
    historyLength: 0,
    continueAsNewSuggested: false,
  };
  engine.activity = async (name, input) => {
    const facts = NO_SANDBOX.get(name) ?? (await agent.perform(name as "modelStep", input));
    if (name === "prune") prunes += 1;
    if (name === "openSession") say((facts as { step: number }).step + 1);
    if (name === "modelStep" && (facts as { kind: string }).kind === "answered")
      say((input as { step: number }).step + 1);
    return facts;
  };
  const status = await codingAgent().then(
    (closed) => closed.status,
    (error: unknown) => {
      const type = error instanceof ApplicationFailure ? error.type : undefined;
      if (!type || type === "Unexpected") throw error;
      return type;
    },
  );
  const view = engine.handlers.get("status")?.() as SessionView;
  const { step, compactionRounds: round, context } = view;
  return { status, state: { step, round, usedTokens: context.used }, prunes };
}
