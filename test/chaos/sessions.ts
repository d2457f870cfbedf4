/** The sessions of a soak: started until time is up, resumed after a cancel, followed to their ends. */
import { randomBytes } from "node:crypto";
import { changedConfig } from "../support/run-config.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { runConfig } from "../bench/stand/stand.ts";
import { drawPlan, playPlan, type SessionPlan } from "./plan.ts";
import type { Random } from "../support/random.ts";
import { startRun, startRunFor } from "../support/start-run.ts";
import type { ChaosStand } from "./stand.ts";

export interface SoakSession {
  readonly id: string;
  readonly plan: SessionPlan;
  /** From its start on: what may have cost it a request. */
  disruptions: number;
  /** Messages sent so far, for their ids. */
  said: number;
  status: string;
  /** Cancelled by the soak, to be resumed. */
  resumes: number;
}

export interface Sessions {
  readonly all: readonly SoakSession[];
  /** Those whose run continues, as last seen. */
  running(): SoakSession[];
  start(): Promise<void>;
  /** Takes a fork in: the model answers it by the other's plan. Called before the fork is made. */
  adopt(id: string, from: SoakSession): SoakSession;
  /** Asks Temporal for the status of each, and resumes those that were cancelled. */
  look(): Promise<void>;
  /** The next message's id of a session. */
  nextMessage(session: SoakSession): { readonly id: string; readonly text: string };
}

export function createSessions(stand: ChaosStand, random: Random): Sessions {
  const { client, postgres, model, taskQueue, image } = stand;
  const all: SoakSession[] = [];
  const nextMessage = (session: SoakSession) => {
    session.said += 1;
    return { id: `${session.id}-${session.said}`, text: `remark ${session.said} for ${session.id}` };
  };
  const look = async (session: SoakSession) => {
    const { status } = await client.workflow.getHandle(session.id).describe();
    session.status = status.name;
    if (status.name !== "CANCELLED") return;
    session.resumes += 1;
    await startRunFor(client, session.id, taskQueue, nextMessage(session));
    session.status = "RUNNING";
  };
  return {
    all,
    nextMessage,
    running: () => all.filter((session) => session.status === "RUNNING"),
    async start() {
      const id = `chaos-${randomBytes(5).toString("hex")}`;
      const plan = drawPlan(random);
      model.serve(id, playPlan(plan));
      const config = changedConfig(runConfig(image), plan.config);
      await patiently(() => createSession(postgres.store, { id, task: "Do what is asked.", config }));
      const session = newSession(id, plan);
      await patiently(() => startRun(client, id, taskQueue));
      all.push(session);
    },
    adopt(id, { plan }) {
      model.serve(id, playPlan(plan));
      const session = newSession(id, plan);
      all.push(session);
      return session;
    },
    async look() {
      for (const session of all)
        if (session.status === "RUNNING" || session.status === "CANCELLED")
          await look(session).catch(() => undefined);
    },
  };
}

function newSession(id: string, plan: SessionPlan): SoakSession {
  return { id, plan, disruptions: 0, said: 0, status: "RUNNING", resumes: 0 };
}

const TRIES = 60;

/** For what is done while services come and go. An answer that it was done already counts as done. */
export async function patiently<T>(attempt: () => Promise<T>): Promise<T | undefined> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof Error && error.name === "WorkflowExecutionAlreadyStartedError") return undefined;
      if (tries === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}
