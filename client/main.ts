/** The client's entry: its commands, and how arguments lead to one of them and its outcome to an exit code. */
import { inspect } from "node:util";
import { CommanderError, Command } from "commander";
import { isInBuild, isVerbose } from "./config/config.ts";
import { ClientError, exitCodes, usageError, type ExitCode } from "./console/errors.ts";
import { endWithoutReader, processOutput, type Output } from "./console/output.ts";
import { hintWriter, productVersion } from "./console/program.ts";
import { commandList } from "./command-list.ts";
import { ownCommand, ownShell } from "./setup/own-command.ts";
import { missingServiceOf } from "./connect/missing-service.ts";
import { databaseErrorOf } from "../activities/store/database-error.ts";
import { reasonOf, theirWords } from "../activities/contract/errors.ts";

/** The end of the help text stays on the screen. */
const BEGIN = `

Begin:
  longhaul run "Write a snake game"             in an empty folder; says where the files are at the end
  longhaul run "Fix the tests" --workspace .    on a copy of this folder
  longhaul doctor                               what is found and what is missing
More about a command: longhaul run --help`;

const EXIT_CODES = `
Exit codes: 0 completed · 1 failed · 2 wrong usage or configuration, nothing started · 3 stopped by a limit ·
  4 a service or credential is missing · 5 no such session, or not possible in its state · 6 cancelled ·
  7 waits for a person (--exit-on-question) · 8 completed, but not delivered · 9 completed, but not verified ·
  130 this client was interrupted, the task continues
Settings: a flag beats the environment, which beats longhaul.yaml.`;

/** As a newcomer reads it: an id is not known before a session was started. */
const WHICH =
  "error: which session? Give its id, the beginning of it, or @last for the newest; longhaul list shows them";

/**
 * The program with the requested command in full, the others by name.
 * @param onDone gets the exit code of the command that ran
 */
async function createProgram(
  argv: readonly string[],
  output: Output,
  onDone: (code: ExitCode) => void,
): Promise<Command> {
  const program = new Command("longhaul")
    .description("A durable coding agent for long tasks. Close the lid, pull the plug: the task goes on.")
    .version(productVersion())
    .option("--verbose", "show where errors come from")
    .addHelpText("after", EXIT_CODES + output.hints(BEGIN))
    .configureOutput({
      outputError: (text, write) =>
        write(text.replace("error: missing required argument 'id'", output.hints(WHICH))),
    });
  for (const { name, aliases = [], usage, about, load } of commandList) {
    // A task's words may be names of commands too: loading one command more than needed does no harm.
    const isAsked = [name, ...aliases].some((title) => argv.includes(title));
    const command = program
      .command(isAsked ? name : usage)
      .aliases(aliases)
      .description(about);
    if (!isAsked) continue;
    const run = (await load())(command, output);
    command.action(async (...args) => onDone((await run(...(args as never[]))) ?? exitCodes.completed));
  }
  for (const command of [program, ...program.commands]) {
    command.exitOverride().showHelpAfterError("(--help shows the usage)").showSuggestionAfterError();
  }
  return program;
}

const verbs = commandList.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
const output = processOutput(hintWriter(verbs, ownCommand(ownShell())), isInBuild());

function explain(error: unknown, verbose: boolean): ExitCode {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.completed : exitCodes.usage;
  const known = error instanceof ClientError ? error : (removedFolder(error) ?? missingServiceOf(error));
  const title = output.style("red", "longhaul:");
  if (known !== undefined) {
    output.note(`${title} ${known.message}\n${known.fix === undefined ? "" : `${known.fix}\n`}`);
  } else {
    const message = databaseErrorOf(error)?.message ?? reasonOf(error);
    output.note(`${title} ${theirWords(message)}\nLONGHAUL_DEBUG=1 or --verbose shows the stack trace.\n`);
  }
  if (verbose)
    output.note(`${inspect(error, { depth: 6 })}
`);
  return known?.exitCode ?? exitCodes.failed;
}

/** Node's error for a process whose current folder was removed. */
function removedFolder(error: unknown): ClientError | undefined {
  const isRemoved = error instanceof Error && "syscall" in error && error.syscall === "uv_cwd";
  return isRemoved ? usageError("The current folder was removed.", "Go to another folder first.") : undefined;
}

async function main(argv: readonly string[]): Promise<ExitCode> {
  let code: ExitCode = exitCodes.completed;
  try {
    const program = await createProgram(argv.slice(2), output, (outcome) => (code = outcome));
    await program.parseAsync([...argv]);
    return code;
  } catch (error) {
    return explain(error, isVerbose() || argv.includes("--verbose"));
  }
}

endWithoutReader();
const code = await main(process.argv);
// The pipes' buffers must be flushed; a slow connection must not delay the exit.
await Promise.all(
  [process.stdout, process.stderr].map((stream) => new Promise((resolve) => stream.write("", resolve))),
);
process.exit(code);
