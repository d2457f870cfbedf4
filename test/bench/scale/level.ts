/** So many sessions at once on so many workers: brought to work, measured for a while, ended. Every wait has its end. */
import { setTimeout as sleep } from "node:timers/promises";
import { endWithin, type WorkerProcess } from "../../support/worker-process.ts";
import { availableBytes, perUnit, residentBytes } from "../stand/processes.ts";
import { collectGarbage } from "./collect-garbage.ts";
import { type Spent, spentUntilNow } from "./counters.ts";
import type { Pause } from "./pacing-model-process.ts";
import type { ScaleStand } from "./stand.ts";

export interface Level {
  readonly sessions: number;
  readonly workers: number;
}

export interface Measured extends Level {
  /** Sessions that were at work when the measuring began. */
  readonly atWork: number;
  /** From the end of each answer to the session's next request, in ms. */
  readonly overheadMs: readonly number[];
  /** Of pauses that continued when the measuring ended, in ms so far. */
  readonly openMs: readonly number[];
  /** How long the answers took of which 10 s were planned, in ms. */
  readonly streamedMs: readonly number[];
  readonly seconds: number;
  readonly spent: Spent;
  /** What the workers held right after a collection of their garbage, from time to time; only in a soak. */
  readonly held: readonly { readonly atSeconds: number; readonly bytes: number }[];
  /** Of a worker's memory and of the whole machine's, what each session took, in bytes. */
  readonly workerBytes: number;
  readonly machineBytes: number;
}

const PROGRESS_MS = 10_000;
/** How often a soak collects: each collection stops the worker for a moment. */
const COLLECT_EVERY_MS = 120_000;
const END_MS = 20_000;
/** For all to be at work, plus a share for each: containers are made one after another. */
const RAMP_MS = 60_000;
const RAMP_EACH_MS = 2_500;
/** What the machine gives to a session: its sandbox for the most part. Source: measured with 200 (14 to 29 MB, 2026-11). */
const SESSION_BYTES = 35 * 1_024 * 1_024;

/** @throws Error that says so, instead of a machine that ends processes at random */
function requireMemory({ sessions }: Level): void {
  const [needed, there] = [sessions * SESSION_BYTES, availableBytes()].map((bytes) => bytes / 1_024 ** 3);
  if ((needed ?? 0) > (there ?? 0))
    throw new Error(
      `their sandboxes take some ${needed?.toFixed(0)} GB of memory, of which ${there?.toFixed(0)} are free`,
    );
}

export interface Window {
  /** How long is measured. */
  readonly ms: number;
  /** Whether the memory that the workers need is looked at, too. */
  readonly isSoak: boolean;
}

/**
 * @throws Error if there is too little memory for so many, or fewer than nine in ten sessions come to work in time
 */
export async function measureLevel(
  stand: ScaleStand,
  level: Level,
  window: Window,
  say: (line: string) => void,
): Promise<Measured> {
  requireMemory(level);
  const workers: WorkerProcess[] = [];
  const ids: string[] = [];
  let starting: Promise<unknown> = Promise.resolve();
  try {
    for (let count = 0; count < level.workers; count += 1) workers.push(await stand.startWorker());
    await stand.model.ask.pauses();
    const before = { machine: availableBytes(), worker: residentOf(workers) };
    starting = Promise.all(
      Array.from({ length: level.sessions }, async () => void ids.push(await stand.startSession())),
    );
    starting.catch(() => undefined);
    const atWork = await ramp(stand, level, say);
    await starting;
    const measured = await measureWindow(stand, workers, window, say);
    return {
      ...level,
      atWork,
      ...measured,
      workerBytes: (residentOf(workers) - before.worker) / level.sessions,
      machineBytes: (before.machine - availableBytes()) / level.sessions,
    };
  } finally {
    say("ending its sessions");
    await Promise.all(workers.map((worker) => endWithin(worker, END_MS)));
    await starting.catch(() => undefined);
    await stand.endSessions(ids);
    await stand.model.ask.forget();
  }
}

/** Waits until each session has had a whole step: with its first one it opens its sandbox. */
async function ramp(stand: ScaleStand, { sessions }: Level, say: (line: string) => void): Promise<number> {
  const deadline = performance.now() + RAMP_MS + RAMP_EACH_MS * sessions;
  for (let lastReportMs = performance.now(); ;) {
    const atWork = await stand.model.ask.stepped();
    if (atWork >= sessions) return atWork;
    if (performance.now() > deadline) {
      if (atWork >= sessions * 0.9) return atWork;
      throw new Error(`only ${atWork} of ${sessions} sessions came to work in time`);
    }
    if (performance.now() - lastReportMs > PROGRESS_MS) {
      lastReportMs = performance.now();
      say(`${atWork} of ${sessions} at work`);
    }
    await sleep(500);
  }
}

async function measureWindow(
  stand: ScaleStand,
  workers: readonly WorkerProcess[],
  { ms: windowMs, isSoak }: Window,
  say: (line: string) => void,
): Promise<Omit<Measured, keyof Level | "atWork" | "workerBytes" | "machineBytes">> {
  await stand.model.ask.pauses();
  const from = await spentUntilNow(stand, workers);
  const began = performance.now();
  const ended: Pause[] = [];
  const held: Measured["held"][number][] = [];
  let collectedMs = -Infinity;
  for (let left = windowMs; left > 0; left = windowMs - (performance.now() - began)) {
    await sleep(Math.min(left, PROGRESS_MS));
    ended.push(...(await stand.model.ask.pauses()).ended);
    if (isSoak && performance.now() - collectedMs >= COLLECT_EVERY_MS) {
      collectedMs = performance.now();
      await Promise.all(workers.map(collectGarbage));
      held.push({ atSeconds: (performance.now() - began) / 1_000, bytes: residentOf(workers) });
    }
    say(`${ended.length} steps, ${await stand.model.ask.streaming()} answers on their way`);
  }
  const { now, open } = await stand.model.ask.pauses();
  const to = await spentUntilNow(stand, workers);
  return {
    overheadMs: ended.map((pause) => (pause.to ?? now) - pause.from),
    openMs: open.map((pause) => now - pause.from),
    streamedMs: ended.map((pause) => pause.streamedMs),
    seconds: (performance.now() - began) / 1_000,
    spent: perUnit(from, to),
    held,
  };
}

function residentOf(workers: readonly WorkerProcess[]): number {
  return workers.reduce((sum, { pid }) => sum + residentBytes(pid), 0);
}
