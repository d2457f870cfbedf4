/** What the soak is asked to do. Pure. */
import { parseArgs } from "node:util";

const FAULTS = [
  "kill",
  "stop",
  "postgres",
  "restarts",
  "hang",
  "docker",
  "temporal",
  "away",
  "reset",
  "retry",
  "fork",
  "say",
  "cancel",
] as const;
export type FaultKind = (typeof FAULTS)[number];

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  /** At work at the same time. */
  readonly sessions: number;
  readonly faults: readonly FaultKind[];
  /** Mean pause between two faults. */
  readonly everyMs: number;
  /** Between two rolling deploys. */
  readonly deployMs: number;
}

export const USAGE = `npm run chaos -- [--minutes N] [--seed N] [--sessions N] [--faults KIND,KIND] [--every SECONDS] [--deploy MINUTES]
  --minutes   how long faults happen; default 30. Then every session ends and is checked
  --seed      of all choices; default a new one, which is printed first
  --sessions  at work at the same time; default 8
  --faults    of: ${FAULTS.join(", ")}; default all
  --every     mean pause between two faults, in seconds; default 4
  --deploy    both workers are replaced in good order, one after the other, so often, in minutes; default 3
npm run chaos -- --resets [N] [--seed N]   resets of sessions of every shape to any event; default 2,000
npm run chaos -- --surroundings   a worker and a client in every kind of surroundings: proxies, authorities, contexts; none of the above
Temporal's server keeps its state in Postgres if Go can build it, and is the development server elsewhere.
`;

/** @throws TypeError naming what was not understood */
export function readOptions(args: readonly string[], newSeed: number): SoakOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: "string", default: "30" },
      seed: { type: "string", default: String(newSeed) },
      sessions: { type: "string", default: "8" },
      faults: { type: "string", default: FAULTS.join(",") },
      every: { type: "string", default: "4" },
      deploy: { type: "string", default: "3" },
    },
  });
  const faults = values.faults.split(",").filter((kind) => kind !== "");
  const unknown = faults.filter((kind) => !isFault(kind));
  if (unknown.length > 0) throw new TypeError(`--faults: there is no ${unknown.join(", ")}`);
  return {
    minutes: number("--minutes", values.minutes),
    seed: Math.trunc(number("--seed", values.seed)),
    sessions: Math.trunc(number("--sessions", values.sessions)),
    faults: faults.filter(isFault),
    everyMs: number("--every", values.every) * 1_000,
    deployMs: number("--deploy", values.deploy) * 60_000,
  };
}

function isFault(kind: string): kind is FaultKind {
  return FAULTS.some((known) => known === kind);
}

function number(name: string, value: string): number {
  const parsed = Number(value);
  if (!Number.isFinite(parsed) || parsed <= 0)
    throw new TypeError(`${name}: ${value} is not a number above 0`);
  return parsed;
}
