/** Two workers that are killed, stopped and restarted; what they use is measured, and if one ends by itself, that is noted. */
import { residentBytes } from "../bench/stand/processes.ts";
import { slope } from "../bench/stats.ts";
import { endWithin, startWorkerProcess, type WorkerProcess } from "../support/worker-process.ts";

export interface Workers {
  /** Fills up to two. */
  fill(): Promise<void>;
  /** kill -9 of one, and another at once or later. */
  kill(place: number): Promise<void>;
  /** As a deploy does: a new one next to it, then the old one is asked to end. @returns how long the old one took, in ms */
  replace(place: number): Promise<number>;
  /** SIGSTOP for a while, then SIGCONT. */
  stop(place: number, ms: number): Promise<void>;
  /** Notes the memory of each. */
  measure(): void;
  /** Ends of their own, with the last words. */
  readonly deaths: readonly string[];
  /** Of each life: MB over seconds. */
  readonly lives: readonly Life[];
  close(): Promise<void>;
}

export interface Life {
  readonly startedAt: number;
  readonly samples: { readonly atS: number; readonly mb: number }[];
}

interface Slot {
  readonly worker: WorkerProcess;
  readonly life: Life;
}

export const WORKERS = 2;
/** What a worker without work takes to end, on a busy machine. */
const END_MS = 45_000;

export function createWorkers(environment: Readonly<Record<string, string>>): Workers {
  const slots: (Slot | undefined)[] = [];
  const lives: Life[] = [];
  const deaths: string[] = [];
  const look = (place: number) => {
    const slot = slots[place];
    if (!slot || slot.worker.alive) return;
    deaths.push(`ended by itself: ${lastWords(slot.worker) || "without a word"}`);
    slots[place] = undefined;
  };
  const start = async (): Promise<Slot> => {
    const worker = await startPatiently(environment);
    const life = { startedAt: Date.now(), samples: [] };
    lives.push(life);
    return { worker, life };
  };
  const fill = async () => {
    for (let place = 0; place < WORKERS; place += 1) {
      look(place);
      slots[place] ??= await start();
    }
  };
  /** In good order; one that does not end is killed, and that is a finding. */
  const end = async ({ worker }: Slot) => {
    const code = await endWithin(worker, END_MS);
    if (code === 0) return;
    deaths.push(
      code === "late"
        ? `it did not end within ${END_MS} ms of SIGTERM`
        : `it ended with ${code} after SIGTERM: ${lastWords(worker)}`,
    );
  };
  return {
    deaths,
    lives,
    fill,
    async kill(place) {
      look(place);
      const slot = slots[place];
      slots[place] = undefined;
      await slot?.worker.kill();
    },
    async replace(place) {
      look(place);
      const old = slots[place];
      slots[place] = await start();
      const began = Date.now();
      if (old) await end(old);
      return Date.now() - began;
    },
    async stop(place, ms) {
      const slot = slots[place];
      if (!slot) return;
      process.kill(slot.worker.pid, "SIGSTOP");
      await new Promise((resolve) => setTimeout(resolve, ms));
      if (slot.worker.alive) process.kill(slot.worker.pid, "SIGCONT");
    },
    measure() {
      for (const [place, slot] of slots.entries()) {
        look(place);
        const bytes = slot ? residentBytes(slot.worker.pid) : 0;
        const mb = bytes / 1_024 ** 2;
        if (slot && bytes > 0)
          slot.life.samples.push({ atS: (Date.now() - slot.life.startedAt) / 1_000, mb });
      }
    },
    async close() {
      for (const slot of slots.splice(0)) if (slot) await end(slot);
    },
  };
}

const lastWords = (worker: WorkerProcess): string => worker.log().trim().split("\n").slice(-3).join(" | ");

/** A machine at its limits may miss the time to start: that is not a finding. */
async function startPatiently(environment: Readonly<Record<string, string>>): Promise<WorkerProcess> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await startWorkerProcess(environment);
    } catch (error) {
      if (tries === 3) throw error;
    }
  }
}

/** Growth of the longest life after its first minute, in MB a minute; undefined if none was long enough. */
export function rssSlope(lives: readonly Life[]): { mbPerMinute: number; minutes: number } | undefined {
  const settled = lives
    .map(({ samples }) => samples.filter((sample) => sample.atS >= 60))
    .toSorted((a, b) => b.length - a.length)[0];
  const first = settled?.[0];
  const last = settled?.at(-1);
  if (!settled || !first || !last || last.atS - first.atS < 60) return undefined;
  const mbPerSecond = slope(settled.map(({ atS, mb }) => ({ x: atS, y: mb })));
  return { mbPerMinute: mbPerSecond * 60, minutes: (last.atS - first.atS) / 60 };
}
