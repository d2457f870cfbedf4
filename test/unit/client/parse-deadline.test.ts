import { expect, it } from "vitest";
import { parseDeadline } from "../../../client/sessions/flag-values.ts";

const NOW = Date.parse("2026-11-23T08:00:00Z");

it.each([
  ["90m", 5_400_000],
  ["1h30m", 5_400_000],
  ["2d", 172_800_000],
  ["45s", 45_000],
  ["2026-11-23T10:00:00Z", 7_200_000],
])("reads %s", (text, ms) => {
  expect(parseDeadline(text, NOW)).toBe(ms);
});

it.each(["", "soon", "90", "1.5h", "-5m", "5s", "2026-11-22T10:00:00Z", "m"])("refuses %j", (text) => {
  expect(() => parseDeadline(text, NOW)).toThrow(/Expected a time|at least 10 seconds/);
});
