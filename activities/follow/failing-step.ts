/**
 * Of a job's log, the step that failed: not the steps before it, and neither the environment that is printed first nor the clean-up that
 * comes last.
 */
import type { StepFacts } from "../forge/facts.ts";

export interface FailingStep {
  /** Its lines, without times and without its environment; the whole log if the step is not found in it. */
  readonly text: string;
  /** Undefined if it is not known. */
  readonly step: string | undefined;
  /** What it ran, in the words of the log. */
  readonly command: string | undefined;
}

interface LogLine {
  /** Undefined for a line without a time. */
  readonly atMs: number | undefined;
  readonly text: string;
}

/** Source: docs.github.com, logs of workflow runs; GitLab's traces have them where FF_TIMESTAMPS is on. */
const TIME = /^\ufeff?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)(?: [\da-f]{2}[OE][ +]?)? ?/;
/** Steps have whole seconds. */
const SPARE_MS = 1_000;
/** A step of Actions begins with this line, and ends with the other if it fails. */
const COMMAND = /^##\[group\](Run .*)$/;
const EXIT = /^##\[error\]Process completed with exit code/;
/** GitLab's sections after the script: they say nothing about why it failed. Source: docs.gitlab.com/ci/jobs/job_logs. */
const AFTERWARDS = /^(?:after_script|archive_cache|upload_artifacts|cleanup)/;

/** @param log masked and cleaned @param steps as the forge has them; undefined if it does not say */
export function failingStep(log: string, steps: readonly StepFacts[] | undefined): FailingStep {
  const lines = log.split("\n").map(lineOf);
  const failed = steps?.find(({ state }) => state === "failed");
  const own = (failed === undefined ? undefined : linesOfStep(lines, failed)) ?? lastSection(lines);
  const { lines: kept, command } = withoutEnvironment(own?.lines ?? lines);
  const text = kept.filter((line) => !/^section_(?:start|end):/.test(line)).join("\n");
  return { text, step: own?.name, command };
}

function lineOf(line: string): LogLine {
  const [time = "", at] = TIME.exec(line) ?? [];
  const rest = line.slice(time.length).replace(/\r$/, "");
  // Of a progress line, what is seen at its end; a section's mark stands before such an end.
  const text = /^section_(?:start|end):/.test(rest) ? rest : rest.slice(rest.lastIndexOf("\r") + 1);
  return { atMs: at === undefined ? undefined : Date.parse(at), text };
}

interface Found {
  readonly name: string;
  readonly lines: readonly LogLine[];
}

/** By its times; where no line has one, by the line that begins it. */
function linesOfStep(lines: readonly LogLine[], { name, startedAt, endedAt }: StepFacts): Found | undefined {
  const [from, to] = [Date.parse(startedAt ?? ""), Date.parse(endedAt ?? "")];
  let isIn = false;
  const timed = lines.filter(({ atMs }) => {
    // A line without a time belongs to the one before it.
    if (atMs !== undefined) isIn = atMs >= from - SPARE_MS && atMs < to + 2 * SPARE_MS;
    return isIn;
  });
  // In the second before it, the step before it has ended.
  const begins = timed.findIndex(
    ({ atMs, text }) => atMs !== undefined && atMs >= from && COMMAND.test(text),
  );
  const own = begins < 0 ? timed : timed.slice(begins);
  if (own.length > 0) return { name, lines: untilExit(own) };
  const start = lines.findIndex(({ text }) => text === `##[group]${name}` || text === `##[group]Run ${name}`);
  if (start < 0) return undefined;
  const next = lines.findIndex(({ text }, index) => index > start && COMMAND.test(text));
  return { name, lines: untilExit(lines.slice(start, next < 0 ? undefined : next)) };
}

function untilExit(lines: readonly LogLine[]): readonly LogLine[] {
  const exit = lines.findIndex(({ text }) => EXIT.test(text));
  return exit < 0 ? lines : lines.slice(0, exit + 1);
}

/** Of a GitLab job that has failed, the last section that is no clean-up. */
function lastSection(lines: readonly LogLine[]): Found | undefined {
  const end = lines.findLastIndex(({ text }) => text.startsWith("ERROR: Job failed"));
  const before = end < 0 ? [] : lines.slice(0, end);
  const start = before.findLastIndex(({ text }) => {
    const name = sectionIn(text);
    return name !== undefined && !AFTERWARDS.test(name);
  });
  const name = sectionIn(before[start]?.text ?? "");
  if (name === undefined) return undefined;
  const close = before.findIndex(
    ({ text }, index) => index > start && text.startsWith("section_end:") && text.includes(`:${name}`),
  );
  return { name, lines: before.slice(start, close < 0 ? undefined : close) };
}

const sectionIn = (text: string): string | undefined => /^section_start:\d+:([\w.-]+)/.exec(text)?.[1];

/** What a step runs stays; how its shell is called and its variables do not. */
function withoutEnvironment(lines: readonly LogLine[]): {
  readonly lines: readonly string[];
  readonly command: string | undefined;
} {
  let isEnvironment = false;
  let isHead = false;
  let command: string | undefined;
  const told = lines.flatMap(({ text }) => {
    const [, run] = COMMAND.exec(text) ?? [];
    if (run !== undefined) {
      command ??= run;
      isHead = true;
    }
    if (isHead && /^(?:shell|env|with):/.test(text)) isEnvironment = true;
    if (text === "##[endgroup]") {
      const wasHead = isHead;
      isHead = false;
      isEnvironment = false;
      if (wasHead) return [];
    }
    return isEnvironment ? [] : [text];
  });
  return { lines: told, command };
}
