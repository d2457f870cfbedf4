/**
 * An agent without Temporal: the real activities on real Postgres, the real model adapter on the strict model server,
 * the workflow's own decisions, and a sandbox that is a folder. A thousand steps take seconds, not minutes.
 */
import { randomBytes } from "node:crypto";
import type { MockActivityEnvironment } from "@temporalio/testing";
import { onTestFinished } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import type {
  AgentActivities,
  CompactionFacts,
  ModelStepFacts,
} from "../../activities/contract/activities.ts";
import type { Guidance } from "../../activities/contract/guidance.ts";
import { createActivities, type AgentDeps } from "../../activities/index.ts";
import { createAiSdkModel } from "../../activities/model/ai-sdk.ts";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import type { SandboxHost } from "../../activities/sandbox/sandbox-host.ts";
import { attemptOf, loneDeps } from "./lone-deps.ts";
import { createSession, type NewSession } from "../../activities/store/sessions.ts";
import type { DialectName } from "./model-server/dialects/dialects.ts";
import type { ServedModel } from "./model-server/wire.ts";
import { createFakeSandbox, type FakeSandbox } from "./fake-sandbox.ts";
import {
  startScriptedModel,
  type ModelScript,
  type ScriptedModelServer,
  type Turn,
} from "./scripted-model.ts";
import type { TestDatabase } from "./test-database.ts";
import { configOf } from "./run-config.ts";
import { sessionEvents, type SessionEvents } from "./session-events.ts";

export interface DirectAgentOptions {
  readonly task?: string;
  readonly parts?: NewSession["parts"];
  /** AGENTS.md of the workspace. */
  readonly instructions?: string;
  readonly config?: Partial<RunConfig>;
  /** The part of the configuration that needs the server's address: a custom provider. */
  readonly targetAt?: (baseUrl: string) => Partial<RunConfig>;
  /** Puts something in front of the server; resolves with the address to use instead. */
  readonly through?: (baseUrl: string) => Promise<string>;
  /** The server that is played. */
  readonly dialect?: DialectName;
  /** What it answers to a GET of another path; undefined: 404. */
  readonly documents?: ((path: string) => unknown) | undefined;
  /** What the server says its models take. */
  readonly served?: Readonly<Record<string, ServedModel>>;
  /** Its sandbox's host, instead of the folder that is `sandbox`. */
  readonly sandboxHost?: SandboxHost;
  /** False in long runs: the script sees the requests, and they are not kept. */
  readonly keepRequests?: boolean;
  /** The server's tokenizer; default: the real one. */
  readonly countTokens?: (text: string) => number;
}

export interface DirectAgent {
  readonly id: string;
  readonly model: ScriptedModelServer;
  readonly sandbox: FakeSandbox;
  readonly deps: AgentDeps;
  /** The Temporal run that activities belong to; a new one claims the session. */
  runId: string;
  /** Runs one activity as an attempt of this run. */
  perform<Name extends keyof AgentActivities>(
    name: Name,
    input: Parameters<AgentActivities[Name]>[0],
    options?: { readonly attempt?: number; readonly environment?: MockActivityEnvironment },
  ): ReturnType<AgentActivities[Name]>;
  /** What people say, as a run stores it when it arrives. */
  say(...items: readonly Guidance[]): Promise<void>;
  /** A step with all its calls. */
  step(number: number, guidance?: readonly Guidance[]): Promise<ModelStepFacts>;
  compact(
    input: Partial<Parameters<AgentActivities["summarize"]>[0]> & {
      readonly step: number;
      readonly round: number;
    },
  ): Promise<CompactionFacts>;
  environment(attempt?: number): MockActivityEnvironment;
  /** Their types. */
  events(): Promise<string[]>;
  readonly dataOf: SessionEvents["dataOf"];
  close(): Promise<void>;
}

/** As `createDirectAgent`, closed with the test. Not for hooks of a whole file, nor for concurrent tests. */
export async function startDirectAgent(
  ...[database, script, options]: Parameters<typeof createDirectAgent>
): Promise<DirectAgent> {
  const agent = await createDirectAgent(database, script, options);
  onTestFinished(() => agent.close());
  return agent;
}

/** The same, its session open. */
export async function openDirectAgent(...its: Parameters<typeof createDirectAgent>): Promise<DirectAgent> {
  const agent = await startDirectAgent(...its);
  await agent.perform("openSession", { chain: agent.runId });
  return agent;
}

/** A session in a window of 32k tokens on the Responses wire, unless `config` says otherwise. The caller closes it. */
export async function createDirectAgent(
  database: TestDatabase,
  script: ModelScript | Turn,
  options: DirectAgentOptions = {},
): Promise<DirectAgent> {
  const id = `direct-${randomBytes(5).toString("hex")}`;
  const settings = directConfig(options.config);
  const name = settings.model.replace(/^openai\//, "");
  const [model, sandbox] = await Promise.all([
    startScriptedModel(script, {
      models: options.served ?? {
        [name]: { window: settings.contextWindow, maxOutput: settings.maxOutput, input: settings.input },
      },
      keepRequests: options.keepRequests,
      countTokens: options.countTokens,
      dialect: options.dialect,
      documents: options.documents,
    }),
    createFakeSandbox(),
  ]);
  const baseUrl = (await options.through?.(model.baseUrl)) ?? model.baseUrl;
  const config = { ...settings, ...options.targetAt?.(baseUrl) };
  const deps = loneDeps(database.store, {
    model: createAiSdkModel({
      environment: { OPENAI_API_KEY: "sk-direct", OPENAI_BASE_URL: baseUrl, TEST_API_KEY: "sk-direct" },
      mask: (text) => text,
    }),
    sandboxHost: options.sandboxHost ?? hostOf(sandbox),
  });
  await createSession(database.store, {
    id,
    task: options.task ?? "Do what is asked.",
    config,
    parts: options.parts,
    instructions: options.instructions,
  });
  const activities = createActivities(deps);
  const saidIds: string[] = [];
  const stored = sessionEvents(database.store, id);
  const agent: DirectAgent = {
    id,
    model,
    sandbox,
    deps,
    runId: "run-1",
    environment: (attempt) => attemptOf(id, agent.runId, attempt),
    // A run names the messages that it knows.
    perform: (name, input, options) =>
      performer(activities, (attempt) => agent.environment(attempt))(
        name,
        name === "modelStep" || name === "summarize" ? { guidance: [...saidIds], ...input } : input,
        options,
      ),
    async say(...items) {
      if (items.length === 0) return;
      await agent.perform("storeGuidance", { step: 0, items });
      saidIds.push(...items.map((item) => item.id));
    },
    async step(number, guidance = []) {
      await agent.say(...guidance);
      const facts = await agent.perform("modelStep", { step: number });
      if (facts.kind === "answered")
        await Promise.all(facts.calls.map((_, index) => agent.perform("runTool", { step: number, index })));
      return facts;
    },
    compact: (input) => agent.perform("summarize", { trigger: "threshold", ...input }),
    events: async () => (await stored.events()).map((event) => event.type),
    dataOf: (type) => stored.dataOf(type),
    async close() {
      await Promise.all([model.close(), sandbox.dispose()]);
    },
  };
  return agent;
}

/** Runs activities of a worker. @param environmentOf an attempt's, unless one is given */
export function performer(
  activities: AgentActivities,
  environmentOf: DirectAgent["environment"],
): DirectAgent["perform"] {
  return (name, input, { attempt, environment } = {}) => {
    const body = activities[name] as (value: unknown) => Promise<unknown>;
    return (environment ?? environmentOf(attempt)).run(body, input) as never;
  };
}

/** Settings of a 32k window. */
export const directConfig = (changes: Partial<RunConfig> = {}): RunConfig =>
  configOf({}, { contextWindow: 32_000, maxOutput: 2_000, ...changes });

/** A host with this one sandbox, unchanged when it is opened after its removal. */
function hostOf(sandbox: Sandbox): SandboxHost {
  let isThere = false;
  return {
    name: "folder",
    async open() {
      isThere = true;
      return sandbox;
    },
    async remove() {
      isThere = false;
    },
    removeUnused: async () => [],
    sessions: async () => [],
    volume: async () => (isThere ? sandbox.identity.volume : undefined),
    close: async () => {},
  };
}

let messageCount = 0;

/** A person's message, with its own id. */
export function guidance(text: string, id = `said-${++messageCount}`): Guidance {
  return { id, parts: [{ type: "text", text }], queuedAt: "2026-11-21T10:00:00.000Z" };
}
