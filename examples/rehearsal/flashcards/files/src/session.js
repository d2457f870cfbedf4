// One sitting: due cards first, then new ones up to a limit. A card that was not known comes back at the end.

import { findCard, replaceCard } from "./cards.js";
import { isDue, isNew } from "./search.js";
import { GRADES, review } from "./sm2.js";

export const DEFAULT_NEW_PER_DAY = 20;

/** The numbers of the cards to show: the longest overdue first, then new ones in the order they were added. */
export function planSession(collection, { day, deck, newLimit = DEFAULT_NEW_PER_DAY }) {
  const cards = collection.cards.filter(
    (card) => isDue(card, day) && (deck === undefined || card.deck === deck),
  );
  const due = cards.filter((card) => !isNew(card));
  due.sort((a, b) => a.schedule.due.localeCompare(b.schedule.due) || a.id - b.id);
  const shown = collection.log.filter((entry) => entry.day === day && entry.first).length;
  const fresh = cards.filter(isNew).slice(0, Math.max(0, newLimit - shown));
  return [...due, ...fresh].map((card) => card.id);
}

/** A running session over a collection. Nothing is written: whoever runs it saves `session.collection`. */
export function createSession(collection, options) {
  let state = { collection, queue: planSession(collection, options), done: 0 };
  const before = [];

  return {
    get collection() {
      return state.collection;
    },
    get left() {
      return state.queue.length;
    },
    get done() {
      return state.done;
    },

    /** The card to show, or undefined when the session is over. */
    current() {
      const [id] = state.queue;
      return id === undefined ? undefined : findCard(state.collection, id);
    },

    /** Grades the card that is shown: again, hard, good or easy. @returns the card with its new schedule */
    answer(grade) {
      const card = this.current();
      if (card === undefined) throw new RangeError("The session is over: there is no card to answer.");
      if (!Object.hasOwn(GRADES, grade)) {
        throw new RangeError(`"${grade}" is no grade; there are: ${Object.keys(GRADES).join(", ")}.`);
      }
      const next = { ...card, schedule: review(card.schedule, GRADES[grade], options.day) };
      const entry = { day: options.day, card: card.id, grade, first: isNew(card) };
      const withLog = { ...state.collection, log: [...state.collection.log, entry] };
      const rest = state.queue.slice(1);
      before.push(state);
      state = {
        collection: replaceCard(withLog, next),
        queue: grade === "again" ? [...rest, card.id] : rest,
        done: state.done + 1,
      };
      return next;
    },

    /** Takes the last answer back. @returns false when there is none */
    undo() {
      const last = before.pop();
      if (last === undefined) return false;
      state = last;
      return true;
    },
  };
}
