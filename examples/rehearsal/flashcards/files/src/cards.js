// Decks and cards as plain data. Every function returns a new collection and leaves the old one as it was,
// which makes undo a matter of keeping the one before.

import { newSchedule } from "./sm2.js";

export const MAX_SIDE_CHARS = 10_000;

/** An empty collection: `{version, nextId, decks, cards, log}`. */
export function emptyCollection() {
  return { version: 1, nextId: 1, decks: [], cards: [], log: [] };
}

/** Adds a deck. A deck that is there already is no error. */
export function addDeck(collection, name) {
  const deck = checkedName(name);
  if (collection.decks.includes(deck)) return collection;
  return { ...collection, decks: [...collection.decks, deck].sort(byName) };
}

/**
 * Adds a card, and its deck where there is none of that name.
 * @returns the new collection and the card in it
 */
export function addCard(collection, { deck, front, back, tags = [] }, day) {
  const card = {
    id: collection.nextId,
    deck: checkedName(deck),
    front: checkedSide("front", front),
    back: checkedSide("back", back),
    tags: checkedTags(tags),
    suspended: false,
    created: day,
    schedule: newSchedule(day),
  };
  const withDeck = addDeck(collection, card.deck);
  return {
    card,
    collection: { ...withDeck, nextId: card.id + 1, cards: [...withDeck.cards, card] },
  };
}

/** Changes the named fields of a card; its schedule stays. */
export function editCard(collection, id, changes) {
  const checked = {};
  if (changes.front !== undefined) checked.front = checkedSide("front", changes.front);
  if (changes.back !== undefined) checked.back = checkedSide("back", changes.back);
  if (changes.tags !== undefined) checked.tags = checkedTags(changes.tags);
  if (changes.suspended !== undefined) checked.suspended = Boolean(changes.suspended);
  return replaceCard(collection, { ...findCard(collection, id), ...checked });
}

export function removeCard(collection, id) {
  findCard(collection, id);
  return { ...collection, cards: collection.cards.filter((card) => card.id !== id) };
}

export function replaceCard(collection, card) {
  return { ...collection, cards: collection.cards.map((one) => (one.id === card.id ? card : one)) };
}

/** The card of that number. @throws RangeError where there is none */
export function findCard(collection, id) {
  const card = collection.cards.find((one) => one.id === id);
  if (card === undefined) throw new RangeError(`There is no card ${id}.`);
  return card;
}

/** True where a deck already asks the same question, whatever its spaces and capitals. */
export function hasFront(collection, deck, front) {
  const wanted = normalise(front);
  return collection.cards.some((card) => card.deck === deck && normalise(card.front) === wanted);
}

function normalise(text) {
  return text.normalize("NFC").trim().replace(/\s+/g, " ").toLowerCase();
}

function checkedName(name) {
  const text = String(name ?? "").trim();
  if (text === "") throw new RangeError("A deck needs a name.");
  if (text.length > 100) throw new RangeError("A deck's name has at most 100 characters.");
  return text;
}

function checkedSide(side, value) {
  const text = String(value ?? "").trim();
  if (text === "") throw new RangeError(`The ${side} of a card must not be empty.`);
  if (text.length > MAX_SIDE_CHARS)
    throw new RangeError(`The ${side} has more than ${MAX_SIDE_CHARS} characters.`);
  return text;
}

function checkedTags(tags) {
  const words = tags.map((tag) => String(tag).trim().toLowerCase()).filter((tag) => tag !== "");
  const wrong = words.find((tag) => /[\s,;:"]/.test(tag));
  if (wrong !== undefined)
    throw new RangeError(`The tag "${wrong}" must be one word without , ; : or quotes.`);
  return [...new Set(words)].sort(byName);
}

function byName(a, b) {
  return a.localeCompare(b, "en");
}
