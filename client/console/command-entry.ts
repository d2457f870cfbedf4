/** How a command is listed and loaded. */
import type { Command } from "commander";
import type { ExitCode } from "./errors.ts";
import type { Output } from "./output.ts";

/**
 * Adds the arguments and options of a command.
 * @returns its action; no exit code means completed
 */
type DefineCommand = (command: Command, output: Output) => (...args: never[]) => Promise<ExitCode | void>;

export interface CommandEntry {
  readonly name: string;
  /** The name with its arguments, for the list of commands: a loaded command describes its arguments itself. */
  readonly usage: string;
  readonly about: string;
  /** Names that people know from other programs. */
  readonly aliases?: readonly string[];
  readonly load: () => Promise<DefineCommand>;
}
