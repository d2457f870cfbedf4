/** What of a task is worth knowing until its end, found by rules in what was said and done: the same for every policy. Pure. */
import type { Fact, FactKind, TrajectoryCall, TrajectoryStep } from "./trajectory.ts";

/** A person's sentence that holds from then on. */
const STANDING = /\b(?:always|never|must|only|do not|don't)\b/i;
/** An agent's sentence that says why. */
const WHY = /\b(?:because|so that|instead of|rather than)\b/i;
/** The line of a failed command that says what failed. */
const FAILURE = /\berror\b|\bFAIL\b|AssertionError|✗|×|not found/i;
/** As our tools write it under a command's output. */
const FAILED_COMMAND = /\[exit code [1-9]\d*\]/;
const MIN_CHARS = 20;
const MAX_CHARS = 240;

/**
 * Rules: sentences of the person with always, never, must, only, do not. Decisions: sentences of the agent with because,
 * so that, instead of, rather than. Paths: files that a call wrote. Findings: of each failed command the first line
 * that names an error. A fact that nothing but chance would tell from another (too short, too long) is left out.
 * @param said by the person, the task first
 */
export function factsOf(said: readonly string[], steps: readonly TrajectoryStep[]): Fact[] {
  const calls = steps.flatMap((step) => step.calls);
  const found: readonly (readonly [FactKind, readonly string[]])[] = [
    ["rule", said.flatMap(sentences).filter((sentence) => STANDING.test(sentence))],
    ["decision", steps.flatMap(({ text }) => sentences(text)).filter((sentence) => WHY.test(sentence))],
    ["path", calls.filter(({ failed }) => failed !== true).flatMap(writtenPaths)],
    ["finding", calls.flatMap(finding)],
  ];
  const facts = new Map<string, Fact>();
  for (const [kind, words] of found)
    for (const each of words) if (!facts.has(each)) facts.set(each, { kind, key: each, words: each });
  return [...facts.values()];
}

function sentences(text: string): string[] {
  return text
    .split(/(?<=[.!?])\s+|\n+/)
    .map((sentence) => sentence.trim())
    .filter(isTelling);
}

function isTelling({ length }: string): boolean {
  return length >= MIN_CHARS && length <= MAX_CHARS;
}

/** Files that a call of an editing tool names. */
export function writtenPaths({ name, input }: Pick<TrajectoryCall, "name" | "input">): string[] {
  const { path, patch } = input as { readonly path?: string; readonly patch?: string };
  if (name === "edit_file" || name === "write_file") return path === undefined ? [] : [path];
  if (name !== "apply_patch" || patch === undefined) return [];
  return [...patch.matchAll(/^\*\*\* (?:Add|Update) File: (.+)$/gm)].map(([, file = ""]) => file.trim());
}

function finding({ name, failed, output }: TrajectoryCall): string[] {
  const isCommand = name === "bash" || name === "execute_command";
  if (!isCommand || (failed !== true && !FAILED_COMMAND.test(output))) return [];
  const line = output.split("\n").find((each) => FAILURE.test(each) && isTelling(each.trim()));
  return line === undefined ? [] : [line.trim()];
}
