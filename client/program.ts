/** The commands and their common options. */
import { Command } from "commander";
import { exitCodes, type ExitCode } from "./console/errors.ts";
import type { Output } from "./console/output.ts";
import { productVersion } from "./console/product-version.ts";
import { commandList } from "./command-list.ts";

const EXIT_CODES = `
Exit codes: 0 completed · 1 failed · 2 wrong usage or configuration, nothing started · 3 stopped by a limit ·
  4 a service or credential is missing · 5 no such session, or not possible in its state · 6 cancelled ·
  7 the session waits for a person · 8 completed, but not delivered · 130 this client was interrupted, the task runs on
Settings: a flag beats the environment, which beats longhaul.yaml.`;

/**
 * The program with the requested command in full, the others by name.
 * @param done gets the exit code of the command that ran
 */
export async function createProgram(
  argv: readonly string[],
  output: Output,
  done: (code: ExitCode) => void,
): Promise<Command> {
  const program = new Command("longhaul")
    .description("A durable coding agent for long tasks. Close the lid, pull the plug: the task goes on.")
    .version(productVersion())
    .option("--verbose", "show where errors come from")
    .addHelpText("after", EXIT_CODES);
  for (const { name, aliases = [], usage, about, load } of commandList) {
    // A task's words may be names of commands too: loading one command more than needed does no harm.
    const isAsked = [name, ...aliases].some((each) => argv.includes(each));
    const command = program
      .command(isAsked ? name : usage)
      .aliases(aliases)
      .description(about);
    if (!isAsked) continue;
    const run = (await load())(command, output);
    command.action(async (...args) => done((await run(...(args as never[]))) ?? exitCodes.completed));
  }
  for (const command of [program, ...program.commands]) {
    command.exitOverride().showHelpAfterError("(--help shows the usage)").showSuggestionAfterError();
  }
  return program;
}
