import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addCard, editCard, emptyCollection } from "../src/cards.js";
import { searchCards } from "../src/search.js";

const DAY = "2026-03-01";
const cards = [
  { deck: "Spanish", front: "la casa", back: "the house", tags: ["noun"] },
  { deck: "Spanish", front: "viajar", back: "to travel", tags: ["verb"] },
  { deck: "Capital cities", front: "France", back: "Paris, the capital", tags: [] },
];
const collection = cards.reduce((all, card) => addCard(all, card, DAY).collection, emptyCollection());
const found = (query, from = collection) => searchCards(from, query, DAY).map((card) => card.id);

describe("a query", () => {
  it("without terms finds all, and words look at both sides", () => {
    assert.deepEqual(found(""), [1, 2, 3]);
    assert.deepEqual(found("THE"), [1, 3]);
    assert.deepEqual(found('"the house"'), [1]);
  });

  it("takes tags, decks with spaces, and several terms at once", () => {
    assert.deepEqual(found("tag:verb"), [2]);
    assert.deepEqual(found('deck:"capital cities"'), [3]);
    assert.deepEqual(found("deck:spanish the"), [1]);
  });

  it("is turned round by a minus", () => {
    assert.deepEqual(found("-tag:verb -france"), [1]);
  });

  it("knows states", () => {
    const suspended = editCard(collection, 1, { suspended: true });
    assert.deepEqual(found("is:due", suspended), [2, 3]);
    assert.deepEqual(found("is:suspended", suspended), [1]);
    assert.throws(() => found("is:nice"), /there are: due, new/);
  });
});
