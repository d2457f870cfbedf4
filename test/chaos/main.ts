/** `npm run chaos`: sessions at work while everything they stand on fails, and then the offline checker over each. */
import { randomInt } from "node:crypto";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { deploy, FAULT_ACTIONS } from "./faults.ts";
import { checkAll, findLeaks, removeLeft } from "./findings.ts";
import { readOptions, type SoakOptions, USAGE } from "./options.ts";
import { onSignal } from "../support/on-signal.ts";
import { createRandom } from "../support/random.ts";
import { createSessions, type Sessions, type SoakSession } from "./sessions.ts";
import { bringUpChaos, type ChaosStand } from "./stand.ts";
import { failuresOf, renderSummary } from "./summary.ts";
import { rssSlope } from "./workers.ts";

/** How long the last sessions may take once nothing is done to them any more. */
const END_MS = 10 * 60_000;
const LOOK_MS = 1_000;

const project = fileURLToPath(new URL("../..", import.meta.url));
const began = Date.now();
const say = (line: string) =>
  process.stderr.write(`[${((Date.now() - began) / 1_000).toFixed(0).padStart(4)} s] ${line}\n`);

async function main(): Promise<number> {
  if (process.argv.includes("--surroundings"))
    return runTests(["test/commands/surroundings.test.ts"], { LONGHAUL_SURROUNDINGS: "all" });
  if (process.argv.includes("--resets"))
    return runTests(["test/replay/resets.test.ts", "test/e2e/resets.test.ts"], resetsAsked());
  let options: SoakOptions;
  try {
    options = readOptions(process.argv.slice(2), randomInt(1, 2 ** 31));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    return 2;
  }
  process.stdout.write(`seed ${options.seed}\n`);
  const stand = await bringUpChaos(say);
  const stop = onSignal(() => {
    say("ending");
    return stand.close();
  });
  try {
    return await soak(stand, options);
  } finally {
    stop();
    say("ending what was brought up");
    await stand.close();
  }
}

/** How many, and by which seed: `--resets 2000 --seed 7`. @throws Error for anything else, which would reset nothing */
function resetsAsked(): Readonly<Record<string, string>> {
  const asked = /^--resets(?: ([1-9]\d*))?(?: --seed (\d+))?$/.exec(process.argv.slice(2).join(" "));
  if (asked === null) throw new Error("Usage: npm run chaos -- --resets [N] [--seed N]");
  const [, count = "2000", seed = String(randomInt(1, 2 ** 31))] = asked;
  process.stdout.write(`seed ${seed}\n`);
  return { LONGHAUL_RESETS: count, LONGHAUL_RESET_SEED: seed };
}

/** Every case of tests of which `npm test` runs a sample. */
async function runTests(files: readonly string[], more: Readonly<Record<string, string>>): Promise<number> {
  const args = [join(project, "scripts", "test.mjs"), ...files];
  const env = { ...process.env, ...more };
  const child = spawn(process.execPath, args, { cwd: project, env, stdio: "inherit" });
  await once(child, "exit");
  return child.exitCode ?? 1;
}

async function soak(stand: ChaosStand, options: SoakOptions): Promise<number> {
  await stand.workers.fill();
  // Sessions and faults draw from chances of their own: what one does leaves the other's as they are.
  const sessions = createSessions(stand, createRandom(options.seed));
  const faults = new Map<string, number>();
  const until = Date.now() + options.minutes * 60_000;
  say(`${options.sessions} sessions at a time, for ${options.minutes} minutes`);
  const time = { over: () => Date.now() > until };
  await Promise.all([
    keepStarting(stand, sessions, options, time),
    keepBreaking({ stand, sessions, options, faults, time }),
  ]);
  say(`no more faults; ${sessions.running().length} sessions are ending`);
  await stand.workers.fill();
  await endAll(stand, sessions);
  say("checking");
  const checked = await checkAll(stand, sessions, say);
  const slope = rssSlope(stand.workers.lives);
  const peak = Math.max(0, ...stand.workers.lives.flatMap((life) => life.samples.map(({ mb }) => mb)));
  const rss = `peak ${peak.toFixed(0)} MB${slope ? `, ${slope.mbPerMinute.toFixed(2)} MB a minute over ${slope.minutes.toFixed(1)} minutes` : ""}`;
  await stand.workers.close();
  const others = [
    ...stand.workers.deaths.map((words) => `a worker: ${words}`),
    ...(await findLeaks(stand, sessions)),
  ];
  await removeLeft(stand, sessions);
  const { seed, minutes } = options;
  const result = { seed, minutes, faults, sessions: checked, others, rss };
  process.stdout.write(`${renderSummary(result)}\n`);
  return failuresOf(result) === 0 ? 0 : 1;
}

interface Time {
  over(): boolean;
}

async function keepStarting(
  stand: ChaosStand,
  sessions: Sessions,
  options: SoakOptions,
  time: Time,
): Promise<void> {
  while (!time.over()) {
    await sessions.look();
    stand.workers.measure();
    for (let missing = options.sessions - sessions.running().length; missing > 0; missing -= 1)
      await sessions.start();
    await sleep(LOOK_MS);
  }
}

interface Breaking {
  readonly stand: ChaosStand;
  readonly sessions: Sessions;
  readonly options: SoakOptions;
  readonly faults: Map<string, number>;
  readonly time: Time;
}

/** One fault after another, so that each comes alone; what they leave behind overlaps. A deploy comes when it is due. */
async function keepBreaking({ stand, sessions, options, faults, time }: Breaking): Promise<void> {
  const random = createRandom(options.seed ^ 0x5eed);
  let deployAt = Date.now() + options.deployMs;
  while (!time.over()) {
    await sleep(options.everyMs * (0.25 + 1.5 * random.next()));
    const isDue = Date.now() >= deployAt;
    if (isDue) deployAt += options.deployMs;
    const kind = isDue ? "deploy" : random.pick(options.faults);
    const fault = kind === "deploy" ? deploy : FAULT_ACTIONS[kind];
    const metBy = meetings(sessions);
    try {
      const done = await fault({ stand, sessions, random });
      if (done === undefined) continue;
      say(`${kind}: ${done}`);
      faults.set(kind, (faults.get(kind) ?? 0) + 1);
      for (const session of metBy()) session.disruptions += 1;
    } catch (error) {
      // A fault on a session that has just ended, or on a server that is just away: chance, not a finding.
      say(
        `${kind} had no effect: ${error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error)}`,
      );
    }
  }
}

/** @returns a function that lists the sessions which ran at any time since: one may begin and end within a fault of a minute */
function meetings(sessions: Sessions): () => SoakSession[] {
  const known = sessions.all.length;
  const before = new Set(sessions.running());
  return () =>
    sessions.all.filter(
      (session, place) => place >= known || before.has(session) || session.status === "RUNNING",
    );
}

async function endAll(stand: ChaosStand, sessions: Sessions): Promise<void> {
  const end = Date.now() + END_MS;
  while (sessions.running().length > 0 && Date.now() < end) {
    await sessions.look();
    stand.workers.measure();
    await sleep(LOOK_MS);
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(
    `${error instanceof ServiceMissing ? error.message : String((error as Error).stack)}\n`,
  );
  process.exitCode = error instanceof ServiceMissing ? 4 : 1;
}
// Not left to an empty event loop: a connection that still tries must not keep a finished soak alive.
process.exit();
