// Figures about a collection. Pure: the day is handed in.

import { addDays, daysBetween } from "./days.js";
import { isDue, isNew } from "./search.js";

/** From this interval on a card counts as mature. Source: Anki's convention, 21 days. */
export const MATURE_DAYS = 21;

/** Counts of cards by state, for all decks together and for each. */
export function countCards(collection, day) {
  const rows = collection.decks.map((deck) => ({
    deck,
    ...countsOf(
      collection.cards.filter((card) => card.deck === deck),
      day,
    ),
  }));
  return { total: countsOf(collection.cards, day), decks: rows };
}

function countsOf(cards, day) {
  return {
    cards: cards.length,
    due: cards.filter((card) => isDue(card, day) && !isNew(card)).length,
    new: cards.filter((card) => isDue(card, day) && isNew(card)).length,
    mature: cards.filter((card) => card.schedule.interval >= MATURE_DAYS).length,
    suspended: cards.filter((card) => card.suspended).length,
  };
}

/**
 * Share of answers that were right, of cards seen before: 0 to 1, or undefined without any.
 * First answers are left out: they tell what was known before, not what was kept.
 */
export function retention(collection, { day, days = 30 }) {
  const since = addDays(day, 1 - days);
  const answers = collection.log.filter((entry) => !entry.first && entry.day >= since && entry.day <= day);
  if (answers.length === 0) return undefined;
  return answers.filter((entry) => entry.grade !== "again").length / answers.length;
}

/** Days in a row with at least one answer, up to today; a day that is not over yet does not break it. */
export function streak(collection, day) {
  const active = new Set(collection.log.map((entry) => entry.day));
  let at = active.has(day) ? day : addDays(day, -1);
  let count = 0;
  while (active.has(at)) {
    count++;
    at = addDays(at, -1);
  }
  return count;
}

/** Cards that fall due on each of the next days; what is overdue counts today. */
export function forecast(collection, { day, days = 7 }) {
  const counts = Array.from({ length: days }, (_, offset) => ({ day: addDays(day, offset), cards: 0 }));
  for (const card of collection.cards) {
    if (card.suspended || isNew(card)) continue;
    const slot = counts[Math.max(0, daysBetween(day, card.schedule.due))];
    if (slot !== undefined) slot.cards++;
  }
  return counts;
}
