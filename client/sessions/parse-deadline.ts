/** `--deadline` as people write it. Pure. */
import { InvalidArgumentError } from "commander";

const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 } as const;
/** As `limits.deadline` has it. */
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
