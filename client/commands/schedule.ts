/** `longhaul schedule`: sessions that begin at fixed times. */
import { Option, type Command } from "commander";
import { exitCodes, notPossible, usageError, type ExitCode } from "../console/errors.ts";
import { harmlessLine, present, shellWord } from "../console/format.ts";
import type { Output, Style } from "../console/output.ts";
import { limitsText, withBound } from "../schedules/schedule-bound.ts";
import type { Overlap, ScheduleDocument } from "../schedules/schedules.ts";
import { positiveAmount } from "../sessions/flag-values.ts";
import { prepareStart, REHEARSAL_NOTE } from "../sessions/prepare-start.ts";
import { withSettingFlags, type RunFlags } from "../sessions/run-flags.ts";

const VERBS = ["create", "list", "pause", "resume", "delete", "run"];
/** With the time that Temporal appends, a session's id has at most 64 characters. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/;

interface ScheduleFlags extends RunFlags {
  readonly cron?: string;
  readonly timeZone?: string;
  readonly overlap: Overlap;
}

export function scheduleCommand(command: Command, output: Output) {
  withSettingFlags(command)
    .argument("<what>", VERBS.join(", "))
    .argument("[name]", "the schedule")
    .argument("[task...]", "with create: what to do each time")
    .option("--cron <times>", 'when, such as "0 6 * * 1-5": minute, hour, day, month, day of the week')
    .option("--time-zone <zone>", "time zone of the times, such as Europe/Berlin (default: UTC)")
    .addOption(
      new Option(
        "--overlap <policy>",
        "what to do when the previous session still runs or waits for a person",
      )
        .choices(["skip", "buffer-one", "cancel", "allow"])
        .default("skip"),
    )
    .option(
      "--max-cost <usd>",
      "stop each session when it has cost this much (default: 10, or 100 steps without a price)",
      positiveAmount,
    )
    .option("--json", "one JSON document");
  return async (
    action: string,
    name: string | undefined,
    taskWords: readonly string[],
    flags: ScheduleFlags,
  ) => {
    if (!VERBS.includes(action))
      throw usageError(`There is no action ${action} of a schedule. Use one of: ${VERBS.join(", ")}.`);
    if (action === "list") return list(flags, output);
    if (name === undefined || !NAME.test(name))
      throw usageError(
        `Name the schedule: longhaul schedule ${action} NAME`,
        "A name begins with a letter or digit and has at most 40 letters, digits, dots, dashes and underscores.",
      );
    if (action === "create") return create(name, taskWords, flags, output);
    return change(action, name, output);
  };
}

async function create(
  name: string,
  taskWords: readonly string[],
  flags: ScheduleFlags,
  output: Output,
): Promise<ExitCode> {
  const { cron, timeZone, overlap } = flags;
  if (cron === undefined)
    throw usageError("A schedule needs times.", 'Add them, such as --cron "0 6 * * 1-5".');
  // No one may be there to answer.
  const startFlags = { ...flags, questions: flags.questions ?? ("deny" as const) };
  const prepared = await prepareStart(taskWords, startFlags, output.note);
  const { config } = prepared;
  const bound = withBound(prepared.start.config, config.isStepsChosen);
  const start = { ...prepared.start, config: bound.config };
  if (config.rehearsal) output.note(`${REHEARSAL_NOTE}\n`);
  const [{ withPreparedServices }, { makeSchedule, parseZone: zoneOf }, { storedStart }] = await Promise.all([
    import("../sessions/with-session.ts"),
    import("../schedules/make-schedule.ts"),
    import("../sessions/start-session.ts"),
  ]);
  const say = (line: string) => output.note(`${line}\n`);
  const next = await withPreparedServices(
    { ...flags, image: config.run.sandbox.image },
    say,
    async (services) => {
      const { task, config: run } = await storedStart(services, name, start);
      return makeSchedule(services, { name, cron, timeZone, overlap, task, config: run });
    },
  );
  const zone = zoneOf({ cron, timeZone });
  say(`The schedule ${name} was created. Its times are in the zone ${zone}.`);
  say(`Next: ${next.map((time) => inZone(time, zone)).join(", ")}.`);
  say(bound.said);
  if (timeZone === undefined && zone === "UTC") say(anotherZone(name));
  say("All schedules: longhaul schedule list");
  return exitCodes.completed;
}

/** Such as `2026-11-27 06:00`. */
const inZone = (time: Date, timeZone: string): string =>
  // The form of Sweden is ISO's.
  new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" }).format(time);

/** A schedule cannot be changed. With this machine's zone, if that is not UTC. */
function anotherZone(name: string): string {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const zone = timeZone === "UTC" ? "Europe/Berlin" : timeZone;
  return `For another zone, create it again with --time-zone ${zone}, after: longhaul schedule delete ${shellWord(name)}`;
}

async function list({ json }: ScheduleFlags, output: Output): Promise<ExitCode> {
  const [{ withServices }, { readSchedules }] = await modules();
  const documents = await withServices(readSchedules);
  if (json === true) output.json(documents, 2);
  else if (documents.length === 0)
    output.note(
      'There are no schedules. Create one: longhaul schedule create NAME --cron "0 6 * * 1-5" -- TASK\n',
    );
  else output.result(`${documents.map((document) => scheduleText(document, output.style)).join("\n")}\n`);
  return exitCodes.completed;
}

function scheduleText(document: ScheduleDocument, style: Style): string {
  const { name, state, cron, timeZone, overlap, next, last, running, task } = document;
  const isRunning = running.length > 0;
  const facts = present(
    `${cron ?? "–"} ${timeZone ?? ""}`.trim(),
    `overlap ${overlap ?? "–"}`,
    state === "active" && `next ${next ?? "–"}`,
    isRunning && `runs ${running.join(", ")}`,
    !isRunning && last !== null && `last ${last}`,
    limitsText(document.limits),
  );
  return `${style("bold", name)}  ${state}  ${facts.join(" · ")}\n  ${harmlessLine(task, 160)}`;
}

async function change(action: string, name: string, output: Output): Promise<ExitCode> {
  const [{ withServices }, { deleteSchedule, pauseSchedule, triggerSchedule }] = await modules();
  return withServices(async (services) => {
    if (action === "delete") {
      await deleteSchedule(services, name);
      output.note(`The schedule ${name} was deleted. Its sessions are kept.\n`);
    } else if (action === "run") {
      const triggered = await triggerSchedule(services, name);
      if (triggered.kind === "skipped")
        throw notPossible(
          `Nothing was started: a session of ${name} still runs, or waits for a person.`,
          "See which: longhaul schedule list",
        );
      if (triggered.kind === "started") {
        output.result(`${triggered.id}\n`);
        output.note(`Watch it: longhaul watch ${shellWord(triggered.id)}\n`);
      } else
        output.note(
          `A start of ${name} was requested: the session begins when the schedule's rules allow it.\n`,
        );
    } else {
      await pauseSchedule(services, name, action === "pause");
      output.note(`The schedule ${name} is ${action === "pause" ? "paused" : "active"}.\n`);
    }
    return exitCodes.completed;
  });
}

const modules = () =>
  Promise.all([import("../sessions/with-session.ts"), import("../schedules/schedules.ts")] as const);
