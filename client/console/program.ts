/** This program: how a command is listed and loaded, the version, and how a hint names the program. */
import type { Command } from "commander";
import type { ExitCode } from "./errors.ts";
import type { Output } from "./output.ts";
import { readFileSync } from "node:fs";

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

/** This product's version. */
export function productVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

/** What may precede the name: a line's beginning, a space or sign, or a colour; not a path such as `bin/longhaul`. */
const BEFORE = String.raw`(?:^|(?<=[^\w./-])|(?<=\u001b\[\d{1,3}m))`;

/**
 * Hints are written as `longhaul COMMAND …` and printed so that they can be pasted literally.
 * @param verbs the names of commands: other words after the name are prose
 * @param command the command that starts the program in the person's shell
 */
export function hintWriter(verbs: readonly string[], command: string): (text: string) => string {
  if (command === "longhaul") return (text) => text;
  const hint = new RegExp(`${BEFORE}longhaul (?=(?:${verbs.join("|")})(?![\\w-]))`, "gm");
  return (text) => text.replace(hint, () => `${command} `);
}
