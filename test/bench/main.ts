/** `npm run bench`: the figures of requirement 9, each against its goal, from one run. The table goes to standard output. */
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { measureAnswers } from "./groups/answers.ts";
import { measureCancel } from "./groups/cancel.ts";
import { measureContext } from "./groups/context.ts";
import { measureFleet } from "./groups/fleet.ts";
import { type Group, scaleOf } from "./groups/group.ts";
import { measureGrowth } from "./groups/growth.ts";
import { measureMemory } from "./groups/memory.ts";
import { measurePolicies, policyNote } from "./groups/policies.ts";
import { measureRecovery } from "./groups/recovery.ts";
import { measureRepository } from "./groups/repository.ts";
import { measureRuns } from "./groups/runs.ts";
import { measureSandbox } from "./groups/sandbox.ts";
import { measureStart } from "./groups/start.ts";
import { measureSteps } from "./groups/steps.ts";
import { measureTokens } from "./groups/tokens.ts";
import { measureWaiting } from "./groups/waiting.ts";
import { measureWake } from "./groups/wake.ts";
import { measureWorkspace } from "./groups/workspace.ts";
import { type BenchOptions, readOptions, USAGE } from "./options.ts";
import { measureScale } from "./scale/scale.ts";
import { onSignal } from "../support/on-signal.ts";
import { bringUpStand } from "./stand/stand.ts";
import { type Figure, renderTable, verdictOf } from "./table.ts";

const GROUPS: Readonly<Record<string, Group>> = {
  steps: measureSteps,
  // Before the fleet: a heap that was large once stays so.
  memory: measureMemory,
  growth: measureGrowth,
  runs: measureRuns,
  fleet: measureFleet,
  waiting: measureWaiting,
  wake: measureWake,
  start: measureStart,
  sandbox: measureSandbox,
  cancel: measureCancel,
  recovery: measureRecovery,
  context: measureContext,
};

type LoneGroup = (options: BenchOptions, say: (line: string) => void) => Promise<Figure[]>;

/** Groups that need no stand: they compute, ask Docker alone, or have one of their own. */
const PURE_GROUPS: Readonly<Record<string, LoneGroup>> = {
  tokens: measureTokens,
  policies: measurePolicies,
  workspace: measureWorkspace,
  repository: measureRepository,
  answers: measureAnswers,
  scale: measureScale,
};

/** Too long for a run of all. */
const NAMED_ONLY: readonly string[] = ["answers", "scale", "repository"];

const began = Date.now();
const say = (line: string) =>
  process.stderr.write(`[${((Date.now() - began) / 1_000).toFixed(0).padStart(3)} s] ${line}\n`);

async function main(): Promise<number> {
  let options: BenchOptions;
  try {
    options = readOptions(process.argv.slice(2), [...Object.keys(GROUPS), ...Object.keys(PURE_GROUPS)]);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    return 2;
  }
  const { only } = options;
  const isChosen = ([name]: readonly [string, unknown]) =>
    only === undefined ? !NAMED_ONLY.includes(name) : only.includes(name);
  const chosen = Object.entries(GROUPS).filter(isChosen);
  const pure = Object.entries(PURE_GROUPS).filter(isChosen);
  const taken: Taken = { figures: [], failures: [], notes: [] };
  await measure(pure, (group) => group(options, say), taken, options);
  if (chosen.length > 0) await onStand(chosen, options, taken);
  if (pure.some(([name]) => name === "policies")) taken.notes.push(policyNote(options));
  report(taken, options);
  return taken.failures.length === 0 ? 0 : 1;
}

async function onStand(
  chosen: readonly (readonly [string, Group])[],
  options: BenchOptions,
  taken: Taken,
): Promise<void> {
  say("bringing up Temporal, Postgres, Docker, the model and two workers on free ports");
  const coming = bringUpStand(say);
  // Reports what was measured so far. A stand that is still being brought up is ended as well.
  const stop = onSignal(async () => {
    report(taken, options);
    await coming.then(
      (stand) => stand.close(),
      () => undefined,
    );
  });
  const stand = await coming;
  const scale = scaleOf(options);
  try {
    await measure(chosen, (group) => group(stand, scale), taken, options);
  } finally {
    stop();
    say("ending what was brought up");
    process.on("uncaughtException", unlessClosed);
    await stand.close();
  }
}

/** Calls that a failed group left in flight are tried again, and find their channel closed: that costs no other figure. */
function unlessClosed(error: Error): void {
  if (!error.message.includes("Channel has been shut down")) throw error;
}

interface Taken {
  readonly figures: Figure[];
  /** Groups that could not be measured, and why. */
  readonly failures: string[];
  /** What the reader must know to read the table. */
  readonly notes: string[];
}

/** On a machine that is slow or busy the last groups are left out, so that a whole run ends within 20 minutes. */
const LAST_START_MS = 16 * 60_000;

/** One group after another; a group that fails does not take the others' figures with it. */
async function measure<Measure>(
  groups: readonly (readonly [string, Measure])[],
  take: (group: Measure) => Promise<Figure[]>,
  { figures, failures }: Taken,
  options: BenchOptions,
): Promise<void> {
  for (const [name, group] of groups) {
    if (options.only === undefined && !options.long && Date.now() - began > LAST_START_MS) {
      failures.push(`${name}: this machine is too slow or too busy for one run; take it with --only ${name}`);
      continue;
    }
    say(name);
    try {
      figures.push(...(await take(group)));
    } catch (error) {
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      say(`${name} failed: ${reason}`);
      failures.push(`${name}: ${reason.split("\n")[0] ?? ""}`);
    }
  }
}

function report({ figures, failures, notes }: Taken, { json }: BenchOptions): void {
  const seconds = ((Date.now() - began) / 1_000).toFixed(0);
  const load = loadavg().map((value) => value.toFixed(1));
  const machine = `Node ${process.version}, ${cpus().length} cores, load ${load.join(" ")}, ${seconds} s.`;
  process.stdout.write(`${renderTable(figures)}\n\n${machine}\n`);
  for (const note of notes) process.stdout.write(`${note}\n`);
  for (const failure of failures) process.stdout.write(`Not measured: ${failure}\n`);
  if (json === undefined) return;
  const verdicts = figures.map((figure) => ({ ...figure, verdict: verdictOf(figure) }));
  writeFileSync(json, `${JSON.stringify({ machine, figures: verdicts, failures }, null, 2)}\n`);
}

try {
  process.exit(await main());
} catch (error) {
  if (!(error instanceof ServiceMissing)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(4);
}
