import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bytes,
  dollars,
  duration,
  inWords,
  inAlternatives,
  tokens,
  usd,
} from "../../activities/text/format.ts";

const UNITS: Readonly<Record<string, number>> = { "": 1, k: 1e3, M: 1e6, B: 1e9, T: 1e12 };

/** The value of `3.4k`, and how far the written digits may be from it. */
function readTokens(text: string): { readonly value: number; readonly error: number } {
  const [, digits = "", fraction = "", unit = ""] = /^(\d+)(\.\d)?([kMBT]?)$/.exec(text) ?? [];
  const size = UNITS[unit] ?? Number.NaN;
  return { value: Number(digits + fraction) * size, error: (size * (digits.length < 2 ? 0.1 : 1)) / 2 };
}

const MS: Readonly<Record<string, number>> = { ms: 1, s: 1e3, min: 60e3, h: 3_600e3 };
const readDuration = (text: string): number =>
  [...text.matchAll(/([\d.]+) (ms|s|min|h)\b/g)].reduce(
    (sum, [, value, unit = ""]) => sum + Number(value) * (MS[unit] ?? Number.NaN),
    0,
  );

/** Below each of these, in ms, what is shown is a multiple of the other. */
const STEPS = [
  [100, 1],
  [9_950, 100],
  [3_599_500, 1_000],
] as const;

describe("an amount that people read", () => {
  test("tokens have at least two digits, and are rounded to the last of them", () => {
    expect([0, 812, 999, 1_000, 3_400, 12_345, 128_000, 999_499, 999_500, 1_234_567].map(tokens)).toEqual([
      "0",
      "812",
      "999",
      "1k",
      "3.4k",
      "12k",
      "128k",
      "999k",
      "1M",
      "1.2M",
    ]);
    fc.assert(
      fc.property(fc.nat({ max: 1_000_000_000 }), (count) => {
        const { value, error } = readTokens(tokens(count));
        expect(Math.abs(value - count)).toBeLessThanOrEqual(error);
      }),
    );
  });

  test("a duration names at most two units, and is right to the smaller one", () => {
    expect([80, 100, 3_210, 9_949, 10_400, 125_000, 120_000, 11_040_000].map(duration)).toEqual([
      "80 ms",
      "0.1 s",
      "3.2 s",
      "9.9 s",
      "10 s",
      "2 min 5 s",
      "2 min",
      "3 h 4 min",
    ]);
    fc.assert(
      fc.property(fc.nat({ max: 500_000_000 }), (ms) => {
        const [, least = 60_000] = STEPS.find(([below]) => ms < below) ?? [];
        // Hours are rounded from whole seconds.
        const error = least / 2 + (least === 60_000 ? 500 : 0);
        expect(Math.abs(readDuration(duration(ms)) - ms)).toBeLessThanOrEqual(error);
      }),
    );
  });

  test("bytes have a decimal only below ten", () => {
    expect([1_023, 1_024, 1_536, 20_480, 1_048_575, 1_048_576, 5_000_000_000].map(bytes)).toEqual([
      "1023 B",
      "1 KB",
      "1.5 KB",
      "20 KB",
      "1024 KB",
      "1 MB",
      "4.7 GB",
    ]);
  });

  test("dollars have cents from one dollar on, else four decimals, and nothing small is free", () => {
    expect([0, 0.000_01, 0.1, 0.012_34, 1, 1234.5].map(dollars)).toEqual([
      "$0",
      "<$0.0001",
      "$0.1000",
      "$0.0123",
      "$1.00",
      "$1234.50",
    ]);
    fc.assert(
      fc.property(fc.double({ min: 0.0001, max: 1e6, noNaN: true }), (amount) => {
        const error = (amount >= 1 ? 0.01 : 0.0001) / 2 + 1e-9;
        expect(Math.abs(Number(dollars(amount).slice(1)) - amount)).toBeLessThanOrEqual(error);
        expect(Math.abs(Number(usd(amount).slice(1)) - amount)).toBeLessThanOrEqual(error);
      }),
    );
  });

  test("a list is written with commas, and a word before the last", () => {
    expect([inWords([]), inWords(["a"]), inWords(["a", "b"]), inAlternatives(["a", "b", "c"])]).toEqual([
      "",
      "a",
      "a and b",
      "a, b or c",
    ]);
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 2, maxLength: 6 }), (names) => {
        expect(inWords(names)).toBe(`${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);
        expect(inAlternatives(names)).toBe(`${names.slice(0, -1).join(", ")} or ${names.at(-1)}`);
      }),
    );
  });
});
