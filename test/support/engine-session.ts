/** A session without Temporal whose sandbox is on a fake engine: its steps, its end, and the run that resumes it. */
import { Suspects } from "../../activities/runtime/lost-attempts.ts";
import { CountedSaves } from "../../activities/runtime/counted-saves.ts";
import { onTestFinished } from "vitest";
import { createActivities, type AgentDeps } from "../../activities/index.ts";
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import { performer, startDirectAgent, type DirectAgent } from "./direct-agent.ts";
import { eventually } from "./eventually.ts";
import { createFakeEngine, type FakeEngine } from "./fake-engine.ts";
import { call, scriptedModel, type ModelScript } from "./scripted-model.ts";
import type { TestDatabase } from "./test-database.ts";

/** Closed with the test. */
export function newEngine(name?: string): FakeEngine {
  const engine = createFakeEngine(name);
  onTestFinished(() => engine.close());
  return engine;
}

/** Closed with the test. */
export async function startOn(
  database: TestDatabase,
  script: ModelScript,
  engine: FakeEngine,
): Promise<DirectAgent> {
  return startDirectAgent(database, script, { sandboxHost: engine.host });
}

/** On a new engine, a session whose model calls bash with these commands, one a step. Closed with the test. */
export async function startCommands(
  database: TestDatabase,
  ...commands: readonly string[]
): Promise<{ readonly engine: FakeEngine; readonly agent: DirectAgent }> {
  const engine = newEngine();
  const script = scriptedModel();
  for (const command of commands) script.answers(bash(command));
  return { engine, agent: await startOn(database, script, engine) };
}

type Worker = Pick<DirectAgent, "perform">;

/** Another worker of the session, with an empty memory. */
export function otherWorker(agent: DirectAgent, changes: Partial<AgentDeps> = {}): Worker {
  const suspects = new Suspects();
  const countedSaves = new CountedSaves(agent.deps.store.db, suspects);
  const activities = createActivities({ ...agent.deps, suspects, countedSaves, ...changes });
  return { perform: performer(activities, (attempt) => agent.environment(attempt)) };
}

/** The saved files, by path. */
export async function saved({ id, deps }: DirectAgent): Promise<Record<string, string>> {
  const files = (await readWorkspace(deps.store.db, id)) ?? [];
  return Object.fromEntries(
    files.map((file) => [file.path, file.kind === "file" ? Buffer.from(file.bytes).toString() : file.kind]),
  );
}

export const untilSaved = (agent: DirectAgent, times = 1) =>
  eventually(
    `${times} saves`,
    async () => (await agent.events()).filter((type) => type === "sandbox:saved").length >= times,
  );

/** Ends the current run after a step, as the workflow does. */
export async function close(agent: DirectAgent, step: number, by: Worker = agent): Promise<void> {
  await by.perform("closeSandbox", { step });
  await by.perform("closeSession", { step, status: "completed" });
}

/** A new run claims the session. @returns its first step */
export async function resume(agent: DirectAgent, runId: string): Promise<number> {
  agent.runId = runId;
  return (await agent.perform("openSession", { chain: runId })).step + 1;
}

/** The model's calls. */
export const bash = (command: string) => call("bash", { command });
