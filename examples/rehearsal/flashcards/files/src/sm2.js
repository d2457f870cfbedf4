// SM-2, the scheduling of SuperMemo 2 (P. A. Wozniak, 1990). Pure: no clock, no files.
//
//   I(1) = 1 day, I(2) = 6 days, I(n) = I(n-1) * EF, fractions rounded up
//   EF' = EF + (0.1 - (5 - q) * (0.08 + (5 - q) * 0.02)), never below 1.3
//   q < 3: the repetitions start again, the factor stays

import { addDays } from "./days.js";

export const FIRST_FACTOR = 2.5;
export const LOWEST_FACTOR = 1.3;

/** What a person presses, as SM-2's quality of an answer (0 to 5). */
export const GRADES = Object.freeze({ again: 1, hard: 3, good: 4, easy: 5 });

/** The schedule of a card that was never shown: due at once. */
export function newSchedule(day) {
  return { repetitions: 0, interval: 0, factor: FIRST_FACTOR, due: day, lapses: 0 };
}

/**
 * The schedule after an answer.
 * @param schedule the one before; it is not changed
 * @param quality SM-2's 0 to 5: below 3 the answer was wrong
 * @param day the day of the answer
 */
export function review(schedule, quality, day) {
  if (!Number.isInteger(quality) || quality < 0 || quality > 5) {
    throw new RangeError(`The quality of an answer is a whole number from 0 to 5, not ${quality}.`);
  }
  if (quality < 3) {
    const lapses = schedule.lapses + (schedule.repetitions > 0 ? 1 : 0);
    return { ...schedule, repetitions: 0, interval: 1, due: addDays(day, 1), lapses };
  }
  const factor = nextFactor(schedule.factor, quality);
  const repetitions = schedule.repetitions + 1;
  const interval = nextInterval(repetitions, schedule.interval, factor);
  return { ...schedule, repetitions, interval, factor, due: addDays(day, interval) };
}

/** The days that each grade would give: what a person sees before choosing. */
export function preview(schedule, day) {
  const entries = Object.entries(GRADES).map(([grade, quality]) => [grade, review(schedule, quality, day)]);
  return Object.fromEntries(entries.map(([grade, next]) => [grade, next.interval]));
}

function nextFactor(factor, quality) {
  const miss = 5 - quality;
  const next = factor + (0.1 - miss * (0.08 + miss * 0.02));
  // Four decimals are kept, so that the file does not fill with 2.3600000000000003.
  return Math.max(LOWEST_FACTOR, Math.round(next * 10_000) / 10_000);
}

function nextInterval(repetitions, interval, factor) {
  if (repetitions === 1) return 1;
  if (repetitions === 2) return 6;
  return Math.ceil(interval * factor);
}
