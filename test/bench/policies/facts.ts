/** What of a task is worth knowing until its end, found by rules in what was said and done: the same for every policy. Pure. */
import type { Fact, FactKind, TrajectoryCall, TrajectoryStep } from "./trajectory.ts";

/** A person's sentence that holds from then on. */
const STANDING = /\b(?:always|never|must|only|do not|don't)\b/i;
/** An agent's sentence, said with a change, that gives a reason or draws a line. */
const DECIDED =
  /\b(?:because|so that|instead of|rather than|since|unless|otherwise|or else|never|only|whatever|at most)\b/i;
/** A line of a failed command that says what failed. */
const FAILURE = /\berror\b|\bFAIL\b|AssertionError|✗|×|not found/i;
const FAILURE_LINES = 3;
/** The result of a test run. */
const TEST_RESULT = /^\s*Tests\s.*\d+ (?:passed|failed)/;
/** As our tools write it under a command's output. */
const FAILED_COMMAND = /\[exit code [1-9]\d*\]/;
const MIN_CHARS = 20;
const MAX_CHARS = 240;

/**
 * Rules: sentences of the person with always, never, must, only, do not. Decisions: sentences of the agent, said with a
 * change of a file, that give a reason or draw a line. Paths: files that a call wrote. Findings: of each failed command
 * the first lines that name an error, and the result of each test run. Sentences and lines of 20 to 240 characters.
 * @param said by the person, the task first
 */
export function factsOf(said: readonly string[], steps: readonly TrajectoryStep[]): Fact[] {
  const calls = steps.flatMap((step) => step.calls);
  const found: readonly (readonly [FactKind, readonly string[]])[] = [
    ["rule", said.flatMap(sentences).filter((sentence) => STANDING.test(sentence))],
    ["decision", steps.flatMap(decisions)],
    ["path", calls.filter(({ failed }) => failed !== true).flatMap(writtenPaths)],
    ["finding", calls.flatMap(findings)],
  ];
  const facts = new Map<string, Fact>();
  for (const [kind, words] of found)
    for (const sentence of words)
      if (!facts.has(sentence)) facts.set(sentence, { kind, key: sentence, words: sentence });
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
function writtenPaths({ name, input }: Pick<TrajectoryCall, "name" | "input">): string[] {
  const { path, patch } = input as { readonly path?: string; readonly patch?: string };
  if (name === "edit_file" || name === "write_file") return path === undefined ? [] : [path];
  if (name !== "apply_patch" || patch === undefined) return [];
  return [...patch.matchAll(/^\*\*\* (?:Add|Update) File: (.+)$/gm)].map(([, file = ""]) => file.trim());
}

function decisions({ text, calls }: TrajectoryStep): string[] {
  if (calls.flatMap(writtenPaths).length === 0) return [];
  return sentences(text).filter((sentence) => DECIDED.test(sentence));
}

function findings({ name, failed, output }: TrajectoryCall): string[] {
  if (name !== "bash" && name !== "execute_command") return [];
  const lines = output.split("\n");
  const hasFailed = failed === true || FAILED_COMMAND.test(output);
  const errors = hasFailed ? lines.filter((line) => FAILURE.test(line)) : [];
  return [...errors.slice(0, FAILURE_LINES), ...lines.filter((line) => TEST_RESULT.test(line))]
    .map((line) => line.trim())
    .filter(isTelling);
}
