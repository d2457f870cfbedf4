/** What is done to a soak: each fault is over when its promise resolves, and says in a line what it was. */
import { setTimeout as sleep } from "node:timers/promises";
import { resetToStep, stepsAsked } from "../support/reset-run.ts";
import type { FaultKind } from "./options.ts";
import type { Random } from "./random.ts";
import { patiently, type Sessions, type SoakSession } from "./sessions.ts";
import type { ChaosStand } from "./stand.ts";
import { WORKERS } from "./workers.ts";

export interface FaultScene {
  readonly stand: ChaosStand;
  readonly sessions: Sessions;
  readonly random: Random;
}

/** @returns what was done; undefined where there was nothing to do it to */
export type Fault = (scene: FaultScene) => Promise<string | undefined>;

/** Longer than the heartbeat's patience, so that others take over what the stopped worker had. */
const STOP_MS = 40_000;

export const FAULT_ACTIONS: Readonly<Record<FaultKind, Fault>> = {
  async kill({ stand, random }) {
    const place = random.below(WORKERS);
    await stand.workers.kill(place);
    const pauseMs = random.chance(0.7) ? 0 : random.between(1, 5) * 1_000;
    await sleep(pauseMs);
    await stand.workers.fill();
    return `worker ${place}, another after ${pauseMs} ms`;
  },

  async stop({ stand, random }) {
    const place = random.below(WORKERS);
    const ms = random.chance(0.5) ? STOP_MS : random.between(1, 10) * 1_000;
    await stand.workers.stop(place, ms);
    return `worker ${place} for ${ms} ms`;
  },

  async postgres({ stand, random }) {
    const how = random.pick(["fast", "immediate"] as const);
    await stand.postgres.stop(how);
    const pauseMs = random.between(0, 3) * 1_000;
    await sleep(pauseMs);
    await stand.postgres.start();
    return `${how}, back after ${pauseMs} ms`;
  },

  async temporal({ stand, random }) {
    await stand.temporal.stop();
    const pauseMs = random.between(0, 5) * 1_000;
    await sleep(pauseMs);
    await stand.temporal.start();
    return `back after ${pauseMs} ms`;
  },

  async docker({ stand, sessions, random }) {
    const session = chosen(sessions, random);
    if (!session) return undefined;
    const box = stand.docker.getContainer(`longhaul-${session.id}`);
    const how = random.pick(["kill", "remove", "stop"] as const);
    try {
      if (how === "kill") await box.kill();
      if (how === "stop") await box.stop({ t: 0 });
      if (how === "remove") await box.remove({ force: true });
    } catch (error) {
      // Not made yet, or gone already.
      const { statusCode } = error as { statusCode?: number };
      if (statusCode === undefined || ![304, 404, 409].includes(statusCode)) throw error;
      return undefined;
    }
    return `${how} the box of ${session.id}`;
  },

  async reset({ stand, sessions, random }) {
    const session = chosen(sessions, random);
    if (!session) return undefined;
    const steps = await stepsAsked(stand.client, session.id);
    if (steps.length < 2) return undefined;
    const step = random.pick(steps.slice(-6));
    await resetToStep(stand.client, session.id, step);
    return `${session.id} to step ${step}`;
  },

  async say({ stand, sessions, random }) {
    const session = chosen(sessions, random);
    if (!session) return undefined;
    const handle = stand.client.workflow.getHandle(session.id);
    const count = random.chance(0.2) ? random.between(20, 150) : random.between(1, 4);
    const name = random.chance(0.15) ? "interrupt" : "guidance";
    for (let sent = 0; sent < count; sent += 1) {
      const message = sessions.nextMessage(session);
      await handle.signal(sent === 0 ? name : "guidance", message);
      if (random.chance(0.1)) await handle.signal("guidance", message);
    }
    return `${count} to ${session.id} by ${name}`;
  },

  async cancel({ stand, sessions, random }) {
    const session = chosen(sessions, random);
    if (!session) return undefined;
    await patiently(() => stand.client.workflow.getHandle(session.id).cancel());
    return session.id;
  },
};

function chosen(sessions: Sessions, random: Random): SoakSession | undefined {
  const list = sessions.running();
  return list.length === 0 ? undefined : random.pick(list);
}
