/** What a step costs besides its model if hundreds of sessions run at once, on Temporal with its state in Postgres. */
import { cpus } from "node:os";
import type { BenchOptions } from "../options.ts";
import { median, quantile, slope } from "../stats.ts";
import { onSignal } from "../../support/on-signal.ts";
import { atMost, type Figure } from "../table.ts";
import { type Level, measureLevel, type Measured } from "./level.ts";
import { bringUpScale } from "./stand.ts";

const SESSIONS = [10, 50, 100, 200, 400];
const QUICK_SESSIONS = [10, 50];
const WORKERS = [1, 2];
const WINDOW_MS = 60_000;
const QUICK_WINDOW_MS = 30_000;
/** The goal on two cores, with everything on them. */
const GOAL_SESSIONS = 200;
const GOAL_P95 = atMost(500);
const MB = 1_024 * 1_024;

/** Each level by itself: one that cannot be measured says why, and the next is taken. @throws ServiceMissing */
export async function measureScale(
  { quick, sessions, minutes }: BenchOptions,
  say: (line: string) => void,
): Promise<Figure[]> {
  say("bringing up Postgres, Temporal with its state in another, Docker and the model");
  const isSoak = minutes !== undefined;
  const stand = await bringUpScale(say, { isSoak });
  const stop = onSignal(() => stand.close());
  const figures: Figure[] = [];
  try {
    const usual = quick ? QUICK_SESSIONS : SESSIONS;
    for (const workers of isSoak ? [1] : WORKERS)
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
      const ms = minutes === undefined ? usualMs : minutes * 60_000;
      const measured = await measureLevel(stand, level, { ms, isSoak }, say);
      const all = [...figuresOf(measured), ...(isSoak ? [growthOf(measured)] : [])];
      say(
        all
          .slice(0, 2)
          .map((figure) => `${figure.name} ${figure.value?.toFixed(0)} ms`)
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
  const { overheadMs, openMs, streamedMs, seconds, spent, atWork } = measured;
  const steps = overheadMs.length;
  const middle = median(overheadMs);
  // Those that are not over count with what they have taken so far if that is long: leaving them out would flatter.
  const late = openMs.filter((ms) => ms > middle);
  const p95 = quantile([...overheadMs, ...late], 0.95);
  const isGoal = measured.sessions === GOAL_SESSIONS && measured.workers === 2;
  const aStep = (total: number) => (total / steps).toFixed(0);
  const serversCpuMs = spent.temporalCpuMs + spent.postgresCpuMs + spent.temporalPostgresCpuMs;
  const servers = `Temporal ${aStep(spent.temporalCpuMs)}, its Postgres ${aStep(spent.temporalPostgresCpuMs)}, ours ${aStep(spent.postgresCpuMs)}; the model's double ${aStep(spent.modelCpuMs)}`;
  const inUse = (spent.machineCpuMs / (seconds * 1_000 * cpus().length)) * 100;
  const streamed = `answers of 10 s took ${(median(streamedMs) / 1_000).toFixed(1)} s`;
  const machine = `the whole machine's ${(measured.machineBytes / MB).toFixed(1)}, with its sandbox`;
  const rows: readonly (readonly [name: string, value: number, unit: string, note?: string])[] = [
    ["overhead of a step, median", middle, "ms"],
    ["overhead of a step, p95", p95, "ms", `${late.length} not over yet`],
    ["steps", steps / seconds, "steps/s", `${atWork} at work; ${streamed}`],
    ["CPU of the workers, a step", spent.workersCpuMs / steps, "ms"],
    ["CPU of the servers, a step", serversCpuMs / steps, "ms", servers],
    ["the machine's CPU in use", inUse, "%", "others' too"],
    [
      "commits of our Postgres, a step",
      spent.commits / steps,
      "",
      `Temporal's ${aStep(spent.temporalCommits)}`,
    ],
    [
      "WAL of our Postgres, a step",
      spent.walBytes / steps / 1_024,
      "KB",
      `Temporal's ${aStep(spent.temporalWalBytes / 1_024)}`,
    ],
    ["memory of the workers, a session", measured.workerBytes / MB, "MB", machine],
  ];
  return rows.map(([name, value, unit, note]) => ({
    name: `${nameOf(measured)}: ${name}`,
    value,
    unit,
    n: steps,
    note,
    goal: isGoal && name === "overhead of a step, p95" ? GOAL_P95 : undefined,
  }));
}

/**
 * Whether the worker's memory grows, after the first tenth of the time: what is resident right after a collection, since V8
 * leaves garbage for as long as there is room. Histories grow until their runs continue as new: hence the highest and lowest of
 * both halves, too.
 */
function growthOf(measured: Measured): Figure {
  const settled = measured.held.slice(Math.ceil(measured.held.length / 10));
  const perSecond = slope(settled.map(({ atSeconds, bytes }) => ({ x: atSeconds, y: bytes / MB })));
  const middle = Math.floor(settled.length / 2);
  const range = (part: Measured["held"]) => {
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
