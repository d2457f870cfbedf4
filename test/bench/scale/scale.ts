/** What a step costs besides its model if hundreds of sessions run at once, on Temporal with its state in Postgres. */
import { cpus } from "node:os";
import type { BenchOptions } from "../options.ts";
import { median, quantile, slope } from "../stats.ts";
import { onSignal } from "../stand/on-signal.ts";
import type { Figure, Goal } from "../table.ts";
import { type Level, measureLevel, type Measured } from "./level.ts";
import { bringUpScale } from "./stand.ts";

/** Source: issue 16. */
const SESSIONS = [10, 50, 100, 200, 400];
const QUICK_SESSIONS = [10, 50];
const WORKERS = [1, 2];
const WINDOW_MS = 60_000;
const QUICK_WINDOW_MS = 30_000;
/** Source: issue 16: two cores, everything on them. */
const GOAL_SESSIONS = 200;
const GOAL_P95: Goal = { of: "value", atMost: 500 };
const MB = 1_024 * 1_024;

/** Each level by itself: one that cannot be measured says why, and the next is taken. @throws ServiceMissing */
export async function measureScale(
  { quick, sessions, minutes }: BenchOptions,
  say: (line: string) => void,
): Promise<Figure[]> {
  say("bringing up Postgres, Temporal with its state in another, Docker and the model");
  const stand = await bringUpScale(say);
  const stop = onSignal(() => stand.close());
  const figures: Figure[] = [];
  try {
    const usual = quick ? QUICK_SESSIONS : SESSIONS;
    for (const workers of minutes === undefined ? WORKERS : [1])
      for (const count of sessions ?? usual) figures.push(...(await take({ workers, sessions: count })));
  } finally {
    stop();
    say("ending what was brought up");
    await stand.close();
  }
  return figures;

  async function take(level: Level): Promise<Figure[]> {
    const name = nameOf(level);
    say(name);
    try {
      const usualMs = quick ? QUICK_WINDOW_MS : WINDOW_MS;
      const measured = await measureLevel(stand, level, minutes ? minutes * 60_000 : usualMs, say);
      const all = [...figuresOf(measured), ...(minutes ? [growthOf(measured)] : [])];
      say(
        all
          .slice(0, 2)
          .map((one) => `${one.name} ${one.value?.toFixed(0)} ms`)
          .join(", "),
      );
      return all;
    } catch (error) {
      const note = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
      say(`not measured: ${note}`);
      return [{ name: `${name}: overhead of a step`, value: undefined, unit: "ms", n: 0, note }];
    }
  }
}

const nameOf = ({ sessions, workers }: Level) =>
  `${sessions} sessions on ${workers} ${workers === 1 ? "worker" : "workers"}`;

function figuresOf(measured: Measured): Figure[] {
  const { overheadMs, openMs, streamedMs, seconds, spent, sessions, atWork } = measured;
  // Those that are not over count with what they have taken so far if that is long: leaving them out would flatter.
  const middle = median(overheadMs);
  const late = openMs.filter((ms) => ms > middle);
  const all = [...overheadMs, ...late];
  const steps = overheadMs.length;
  const figure = (name: string, value: number, unit: string, note?: string): Figure => ({
    name: `${nameOf(measured)}: ${name}`,
    value,
    unit,
    n: steps,
    ...(note === undefined ? {} : { note }),
  });
  const cpu = (ms: number) => (ms / steps).toFixed(0);
  const isGoal = sessions === GOAL_SESSIONS && measured.workers === 2;
  return [
    figure("overhead of a step, median", middle, "ms"),
    {
      ...figure("overhead of a step, p95", quantile(all, 0.95), "ms", `${late.length} not over yet`),
      ...(isGoal ? { goal: GOAL_P95 } : {}),
    },
    figure(
      "steps",
      steps / seconds,
      "steps/s",
      `${atWork} at work; answers of 10 s took ${(median(streamedMs) / 1_000).toFixed(1)} s`,
    ),
    figure("CPU of the workers, a step", spent.workersCpuMs / steps, "ms"),
    figure(
      "CPU of the servers, a step",
      (spent.temporalCpuMs + spent.postgresCpuMs + spent.temporalPostgresCpuMs) / steps,
      "ms",
      `Temporal ${cpu(spent.temporalCpuMs)}, its Postgres ${cpu(spent.temporalPostgresCpuMs)}, ours ${cpu(spent.postgresCpuMs)}; the model's double ${cpu(spent.modelCpuMs)}`,
    ),
    figure(
      "the machine's CPU in use",
      (spent.machineCpuMs / (seconds * 1_000 * cpus().length)) * 100,
      "%",
      "others' too",
    ),
    figure(
      "commits of our Postgres, a step",
      spent.commits / steps,
      "",
      `Temporal's ${(spent.temporalCommits / steps).toFixed(0)}`,
    ),
    figure(
      "WAL of our Postgres, a step",
      spent.walBytes / steps / 1_024,
      "KB",
      `Temporal's ${(spent.temporalWalBytes / steps / 1_024).toFixed(0)}`,
    ),
    figure(
      "memory of the workers, a session",
      measured.workerBytes / MB,
      "MB",
      `the whole machine's ${(measured.machineBytes / MB).toFixed(1)}, with its sandbox`,
    ),
  ];
}

/**
 * Whether the worker's memory grows, after the first tenth of the time. A line through a saw's teeth says little by itself:
 * garbage is collected rarely, and histories grow until their runs continue as new. Hence the highest and lowest of both halves, too.
 */
function growthOf(measured: Measured): Figure {
  const settled = measured.resident.slice(Math.floor(measured.resident.length / 10));
  const perSecond = slope(settled.map(({ atSeconds, bytes }) => ({ x: atSeconds, y: bytes / MB })));
  const middle = Math.floor(settled.length / 2);
  const range = (part: Measured["resident"]) => {
    const held = part.map(({ bytes }) => bytes / MB);
    return `${Math.min(...held).toFixed(0)} to ${Math.max(...held).toFixed(0)} MB`;
  };
  return {
    name: `${nameOf(measured)}: growth of the worker's memory`,
    value: perSecond * 3_600,
    unit: "MB/h",
    n: settled.length,
    note: `${range(settled.slice(0, middle))} in the first half of ${((measured.seconds * 0.9) / 60).toFixed(0)} minutes, ${range(settled.slice(middle))} in the second`,
  };
}
