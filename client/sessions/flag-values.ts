/** Parsers of flag values: each throws commander's InvalidArgumentError, which says what is expected. */
import { InvalidArgumentError } from "commander";
import type { z } from "zod";
import { branchName } from "../../activities/config/git-settings.ts";
import { issueText } from "../../activities/config/issue-text.ts";

/** Maximum of an integer column in Postgres. */
const MAX_INTEGER = 2 ** 31 - 1;

export function positiveInteger(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > MAX_INTEGER)
    throw new InvalidArgumentError(`Expected a positive integer up to ${MAX_INTEGER}.`);
  return value;
}

/** @returns a parser that validates a value by a schema of the settings */
export function checked<T>(
  schema: z.ZodType<T>,
  read: (text: string) => unknown = String,
): (text: string) => T {
  return (text) => {
    const result = schema.safeParse(read(text));
    if (result.success) return result.data;
    throw new InvalidArgumentError(sentence(result.error.issues.map(issueText).join("; ")));
  };
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

export function positiveAmount(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError("Expected an amount above 0.");
  return value;
}

export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) {
    throw new InvalidArgumentError("Expected a non-negative integer.");
  }
  return value;
}

export const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];

const MAX_PORT = 65_535;

/** @param from 0 if that means a free port */
export function portNumber(from: 0 | 1): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= from && value <= MAX_PORT) return value;
    throw new InvalidArgumentError(`Expected a port from ${from} to ${MAX_PORT}.`);
  };
}

export function parseBranch(text: string): string {
  if (branchName.safeParse(text).success) return text;
  throw new InvalidArgumentError("Expected a valid Git branch name.");
}

const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 } as const;
/** The minimum of `limits.deadline`. */
const MIN_MS = 10_000;

/** A span such as `90m` or `1h30m`, or a moment in ISO form. @returns ms from `nowMs` on */
export function parseDeadline(text: string, nowMs: number): number {
  const ms = /^(?:\d+[dhms])+$/.test(text) ? spanMs(text) : Date.parse(text) - nowMs;
  if (Number.isNaN(ms) || !/\d[dhms]$|T\d|^\d{4}-\d\d-\d\d/.test(text))
    throw new InvalidArgumentError("Expected a time such as 90m, 8h or 2d, or an ISO time.");
  if (ms < MIN_MS) throw new InvalidArgumentError("A deadline is at least 10 seconds from now.");
  return ms;
}

function spanMs(text: string): number {
  const parts = [...text.matchAll(/(\d+)([dhms])/g)];
  return parts.reduce(
    (sum, [, count, unit]) => sum + Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS],
    0,
  );
}
