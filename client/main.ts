/** The client's entry: maps arguments to a command, and its outcome to an exit code. */
import { inspect } from "node:util";
import { CommanderError } from "commander";
import { isInBuild, isVerbose } from "./config/config.ts";
import { ClientError, exitCodes, usageError, type ExitCode } from "./console/errors.ts";
import { endWithoutReader, processOutput } from "./console/output.ts";
import { hintWriter } from "./console/hints.ts";
import { commandList } from "./command-list.ts";
import { createProgram } from "./program.ts";
import { ownCommand, ownShell } from "./setup/own-command.ts";
import { missingServiceOf } from "./connect/missing-service.ts";
import { databaseErrorOf } from "../activities/store/database-error.ts";
import { reasonOf, theirWords } from "../activities/contract/reason-of.ts";

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
  [process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write("", done))),
);
process.exit(code);
