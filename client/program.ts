/** The commands and what they share. */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { cancelCommand } from "./commands/cancel.ts";
import { compactCommand } from "./commands/compact.ts";
import { contextCommand } from "./commands/context.ts";
import { diffCommand } from "./commands/diff.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { downCommand } from "./commands/down.ts";
import { exportCommand } from "./commands/export.ts";
import { interruptCommand } from "./commands/interrupt.ts";
import { listCommand } from "./commands/list.ts";
import { pullCommand } from "./commands/pull.ts";
import { runCommand } from "./commands/run.ts";
import { sayCommand } from "./commands/say.ts";
import { startCommand } from "./commands/start.ts";
import { statusCommand } from "./commands/status.ts";
import { upCommand } from "./commands/up.ts";
import { watchCommand } from "./commands/watch.ts";
import { workerCommand } from "./commands/worker.ts";
import type { ExitCode } from "./errors.ts";
import type { Output } from "./output.ts";

/** In the order of the help text. */
const commands = [
  runCommand,
  startCommand,
  sayCommand,
  interruptCommand,
  cancelCommand,
  watchCommand,
  statusCommand,
  listCommand,
  contextCommand,
  compactCommand,
  exportCommand,
  pullCommand,
  diffCommand,
  workerCommand,
  upCommand,
  downCommand,
  doctorCommand,
];

const EXIT_CODES = `
Exit codes: 0 completed · 1 failed · 2 wrong usage or configuration, nothing started · 3 stopped by a limit ·
  4 a service or credential is missing · 5 no such session, or not possible in its state · 6 cancelled ·
  130 this client was interrupted, the task runs on
Settings: a flag beats the environment, which beats longhaul.yaml.`;

/** @param done takes the exit code of the command that ran */
export function createProgram(output: Output, done: (code: ExitCode) => void): Command {
  const program = new Command("longhaul")
    .description("A durable coding agent for long tasks. Close the lid, pull the plug: the task goes on.")
    .version(versionOf())
    .option("--verbose", "show where errors come from")
    .addHelpText("after", EXIT_CODES);
  for (const command of commands) program.addCommand(command(output, done));
  for (const command of [program, ...program.commands]) {
    command.exitOverride().showHelpAfterError("(--help shows how it is used)").showSuggestionAfterError();
  }
  return program;
}

function versionOf(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
