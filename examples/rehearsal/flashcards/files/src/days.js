// Scheduling counts in whole days. A day is its ISO date in UTC ("2026-03-01"), so that it sorts as text,
// is stored as it is, and never shifts with a summer time.

const DAY_MS = 24 * 60 * 60 * 1000;

/** The day of a point in time. */
export function dayOf(date) {
  return date.toISOString().slice(0, 10);
}

/** The day so many days later (or earlier, when `count` is negative). */
export function addDays(day, count) {
  return dayOf(new Date(Date.parse(day) + count * DAY_MS));
}

/** Days from `from` to `to`: positive when `to` is later. */
export function daysBetween(from, to) {
  return Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS);
}

/** True for a real day in the form that this module uses: 2026-02-30 is none. */
export function isDay(text) {
  if (typeof text !== "string" || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = Date.parse(text);
  return !Number.isNaN(time) && dayOf(new Date(time)) === text;
}
