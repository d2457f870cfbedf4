/** What the benchmark is asked to do. Pure. */
import { parseArgs } from "node:util";

export interface BenchOptions {
  /** Fewer repeats: below 3 minutes. */
  readonly quick: boolean;
  /** Step 1,000 in the place of step 200, and a session of 5,000 steps. */
  readonly long: boolean;
  /** Where the figures are written as JSON. */
  readonly json: string | undefined;
  /** Names of the groups to run; undefined = all. */
  readonly only: readonly string[] | undefined;
  /** An exported session, which our policies replay in the recorded one's place. */
  readonly file: string | undefined;
  /** Of the group scale: how many sessions at once, one level after another; undefined = its own. */
  readonly sessions: readonly number[] | undefined;
  /** Of the group scale: how long each level is measured, on one worker; undefined = a minute, on one and on two. */
  readonly minutes: number | undefined;
  /** Of the group answers: another checkout, whose figures are taken in turn with this one's. */
  readonly against: string | undefined;
}

export const USAGE = `npm run bench -- [--quick] [--long] [--json FILE] [--only GROUP,GROUP] [--trajectory FILE] [--sessions N,N] [--minutes N]
  --quick   fewer repeats, below 3 minutes
  --long    compares step 1,000 (else 200) with step 10, and the ends of a session of 5,000 steps (else 400)
  --json    writes the figures to FILE
  --only    of: steps, memory, growth, runs, fleet, waiting, wake, start, sandbox, cancel, context;
            tokens and policies compute only, and need no service; workspace needs Docker alone;
            repository makes one of 100,000 files (with --quick 10,000), and is only taken where it is named;
            answers streams for two minutes, and is only taken where it is named;
        scale builds Temporal's server with Go, takes 40 minutes, and is only taken where it is named
  --trajectory FILE   our policies replay what \`longhaul export\` wrote (gzip or plain), not the recorded session
  --sessions N,N      of scale: how many at once, one after another (else 10,50,100,200,400; with --quick 10,50)
  --minutes N         of scale: so long, on one worker, whose memory is followed: 60 is the soak
  --against FOLDER    of answers: another checkout, whose figures are taken in turn with this one's
`;

/** @throws TypeError naming what was not understood */
export function readOptions(args: readonly string[], groups: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      long: { type: "boolean", default: false },
      json: { type: "string" },
      only: { type: "string" },
      trajectory: { type: "string" },
      sessions: { type: "string" },
      minutes: { type: "string" },
      against: { type: "string" },
    },
  });
  const only = values.only?.split(",");
  const unknown = only?.find((name) => !groups.includes(name));
  if (unknown !== undefined) throw new TypeError(`There is no group "${unknown}".`);
  const { quick, long, json, trajectory: file, against } = values;
  const sessions = values.sessions?.split(",").map(Number);
  if (sessions?.some((count) => !Number.isInteger(count) || count < 1))
    throw new TypeError(`--sessions: "${values.sessions}" are not numbers above 0.`);
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
  if (minutes !== undefined && !(minutes > 0))
    throw new TypeError(`--minutes: "${values.minutes}" is not a number above 0.`);
  return { quick, long, json, only, file, sessions, minutes, against };
}
