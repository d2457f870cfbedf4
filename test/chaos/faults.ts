/** What is done to a soak: each fault is over when its promise resolves, and says in a line what it was. */
import { setTimeout as sleep } from "node:timers/promises";
import { randomBytes } from "node:crypto";
import { forkSession } from "../../client/sessions/fork-session.ts";
import { requireSession } from "../../client/sessions/with-session.ts";
import { retrySession } from "../../client/sessions/retry-session.ts";
import { lastStep } from "../../activities/store/sessions.ts";
import { resetToStep, stepsAsked } from "../support/reset-run.ts";
import type { FaultKind } from "./options.ts";
import type { Random } from "../support/random.ts";
import { patiently, type Sessions, type SoakSession } from "./sessions.ts";
import type { ChaosStand } from "./stand.ts";
import { WORKERS } from "./workers.ts";

interface FaultScene {
  readonly stand: ChaosStand;
  readonly sessions: Sessions;
  readonly random: Random;
}

/** @returns what was done; undefined if there was nothing to do it to */
export type Fault = (scene: FaultScene) => Promise<string | undefined>;

/** Longer than the heartbeat's patience, so that others take over what the stopped worker had. */
const STOP_MS = 40_000;
/** Ten restarts of Postgres in a minute [R16], a Temporal that is away for one [R18]. */
const RESTARTS = 10;
const RESTART_EVERY_MS = 6_000;
const AWAY_MS = 60_000;

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

  async restarts({ stand }) {
    const began = Date.now();
    for (let restart = 1; restart <= RESTARTS; restart += 1) {
      await stand.postgres.stop("fast");
      await stand.postgres.start();
      await sleep(Math.max(0, began + restart * RESTART_EVERY_MS - Date.now()));
    }
    return `Postgres ${RESTARTS} times in ${Math.round((Date.now() - began) / 1_000)} s`;
  },

  async hang({ stand, random }) {
    const ms = random.between(5, 30) * 1_000;
    const resume = await stand.postgres.pause();
    await sleep(ms).finally(resume);
    return `Postgres answers nothing for ${ms} ms`;
  },

  async away({ stand }) {
    await stand.temporal.stop();
    await sleep(AWAY_MS);
    await stand.temporal.start();
    return `Temporal for ${AWAY_MS} ms`;
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
    const sandbox = stand.docker.getContainer(`longhaul-${session.id}`);
    const how = random.pick(["kill", "remove", "stop"] as const);
    try {
      if (how === "kill") await sandbox.kill();
      if (how === "stop") await sandbox.stop({ t: 0 });
      if (how === "remove") await sandbox.remove({ force: true });
    } catch (error) {
      // Not made yet, or gone already.
      const { statusCode } = error as { statusCode?: number };
      if (statusCode === undefined || ![304, 404, 409].includes(statusCode)) throw error;
      return undefined;
    }
    return `${how} the sandbox of ${session.id}`;
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

  async retry({ stand, sessions, random }) {
    const found = await withSteps({ stand, sessions, random });
    if (!found) return undefined;
    const { session, row, last } = found;
    const fromStep = random.between(Math.max(1, last - 5), last);
    const { epoch } = await retrySession(stand.services, row, { fromStep, dropMessages: false });
    session.status = "RUNNING";
    return `${session.id} from step ${fromStep}, epoch ${epoch}`;
  },

  async fork({ stand, sessions, random }) {
    const found = await withSteps({ stand, sessions, random });
    if (!found) return undefined;
    const { session, row, last } = found;
    const fromStep = random.between(2, last);
    const id = `chaos-${randomBytes(5).toString("hex")}`;
    const forked = sessions.adopt(id, session);
    const message = random.chance(0.5) ? "go on as before" : undefined;
    try {
      await forkSession(stand.services, row, { id, fromStep, message });
    } catch (error) {
      // Not made, or made and not started: then it is none of the soak's.
      forked.status = "NONE";
      throw error;
    }
    return `${session.id} before step ${fromStep} as ${id}`;
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

/** A rolling deploy: each worker is replaced in good order while the other works. */
export const deploy: Fault = async ({ stand }) => {
  const ended: number[] = [];
  for (let place = 0; place < WORKERS; place += 1) ended.push(await stand.workers.replace(place));
  return `both workers replaced; the old ones ended within ${ended.join(" and ")} ms`;
};

/** A session that has taken steps. One that has ended, too: it continues from there. */
async function withSteps({ stand, sessions, random }: FaultScene) {
  const session = chosen(sessions, random, ["RUNNING", "COMPLETED"]);
  if (!session) return undefined;
  const last = await lastStep(stand.services.store.db, session.id);
  return last < 2 ? undefined : { session, last, row: await requireSession(stand.services, session.id) };
}

function chosen(
  sessions: Sessions,
  random: Random,
  statuses: readonly string[] = ["RUNNING"],
): SoakSession | undefined {
  const list = sessions.all.filter(({ status }) => statuses.includes(status));
  return list.length === 0 ? undefined : random.pick(list);
}
