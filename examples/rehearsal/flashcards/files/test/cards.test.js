import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addCard, addDeck, editCard, emptyCollection, findCard, hasFront, removeCard } from "../src/cards.js";

const DAY = "2026-03-01";
const house = { deck: "Spanish", front: "la casa", back: "the house", tags: ["Noun", "home", "noun"] };

describe("cards", () => {
  it("are added with a number, their deck, and tags in order without doubles", () => {
    const { card, collection } = addCard(emptyCollection(), house, DAY);
    assert.equal(card.id, 1);
    assert.deepEqual(card.tags, ["home", "noun"]);
    assert.deepEqual(collection.decks, ["Spanish"]);
    assert.equal(card.schedule.due, DAY);
  });

  it("keep their numbers to themselves, also after one is removed", () => {
    let { collection } = addCard(emptyCollection(), house, DAY);
    collection = removeCard(collection, 1);
    assert.equal(addCard(collection, house, DAY).card.id, 2);
    assert.throws(() => findCard(collection, 1), /no card 1/);
  });

  it("leave the collection before as it was", () => {
    const before = Object.freeze(emptyCollection());
    addCard(before, house, DAY);
    assert.deepEqual(before, emptyCollection());
  });

  it("are edited without touching their schedule", () => {
    const { collection, card } = addCard(emptyCollection(), house, DAY);
    const edited = findCard(editCard(collection, 1, { back: "the home" }), 1);
    assert.equal(edited.back, "the home");
    assert.equal(edited.front, "la casa");
    assert.deepEqual(edited.schedule, card.schedule);
  });

  it("refuse empty sides, too long ones and tags of two words", () => {
    const add = (changes) => () => addCard(emptyCollection(), { ...house, ...changes }, DAY);
    assert.throws(add({ front: "  " }), /front of a card must not be empty/);
    assert.throws(add({ back: "x".repeat(10_001) }), /more than 10000/);
    assert.throws(add({ tags: ["two words"] }), /one word/);
    assert.throws(add({ deck: "" }), /needs a name/);
  });

  it("find a double whatever its spaces and capitals, in its own deck only", () => {
    const { collection } = addCard(emptyCollection(), house, DAY);
    assert.ok(hasFront(collection, "Spanish", " La  CASA "));
    assert.ok(!hasFront(collection, "French", "la casa"));
  });

  it("decks are sorted, and adding one twice changes nothing", () => {
    const collection = addDeck(addDeck(emptyCollection(), "b"), "a");
    assert.deepEqual(collection.decks, ["a", "b"]);
    assert.equal(addDeck(collection, "a"), collection);
  });
});
