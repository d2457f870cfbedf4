/** Saves of a session whose sandbox a test opened itself. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { recordSandbox } from "../../activities/store/sandboxes.ts";
import { createSession, findSession, type Session } from "../../activities/store/sessions.ts";
import type { Store } from "../../activities/store/db.ts";
import { saveSandbox } from "../../activities/workspace/save-files.ts";
import type { SessionSandboxes } from "../../activities/workspace/session-sandbox.ts";
import { runConfig } from "./agent-harness.ts";
import { loneDeps } from "./lone-deps.ts";

export async function newSessionIn(sandbox: Sandbox, store: Store): Promise<Session> {
  const id = randomUUID();
  await createSession(store, { id, task: "Save it.", config: runConfig() });
  await recordSandbox(store.db, id, { ...sandbox.identity, taskQueue: undefined, savedStep: 0 });
  const session = await findSession(store.db, id);
  if (!session) throw new Error("No session.");
  return session;
}

/** Saves the sandbox's files as the session's. */
export function saveOf(
  sandbox: Sandbox,
  store: Store,
): (session: Session, step: number) => ReturnType<typeof saveSandbox> {
  const deps = loneDeps(store, { model: { ask: () => expect.fail("No model is asked.") } });
  const open: SessionSandboxes = {
    open: async () => ({ sandbox, workspace: "adopted" }),
    find: async () => sandbox,
    opened: async () => sandbox,
    forget: () => undefined,
  };
  return (session, step) => saveSandbox(deps, open, session, step);
}
