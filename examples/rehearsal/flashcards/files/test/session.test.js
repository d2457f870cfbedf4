import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addCard, editCard, emptyCollection, findCard, replaceCard } from "../src/cards.js";
import { createSession, planSession } from "../src/session.js";

const DAY = "2026-03-10";
function collectionOf(count, deck = "d") {
  let collection = emptyCollection();
  for (let at = 1; at <= count; at++) {
    collection = addCard(collection, { deck, front: `front ${at}`, back: "b" }, "2026-03-01").collection;
  }
  return collection;
}
function dueOn(collection, id, due) {
  const card = findCard(collection, id);
  const schedule = { ...card.schedule, repetitions: 2, interval: 6, due };
  return replaceCard(collection, { ...card, schedule });
}

describe("a session", () => {
  it("shows the longest overdue first, then new cards up to the limit", () => {
    let collection = dueOn(collectionOf(6), 5, "2026-03-09");
    collection = dueOn(collection, 6, "2026-03-02");
    collection = dueOn(collection, 4, "2026-03-11");
    assert.deepEqual(planSession(collection, { day: DAY, newLimit: 2 }), [6, 5, 1, 2]);
  });

  it("counts new cards of the same day, so that a second sitting does not double them", () => {
    const session = createSession(collectionOf(5), { day: DAY, newLimit: 3 });
    session.answer("good");
    session.answer("good");
    assert.equal(planSession(session.collection, { day: DAY, newLimit: 3 }).length, 1);
  });

  it("leaves out suspended cards and other decks", () => {
    const collection = editCard(collectionOf(2), 1, { suspended: true });
    assert.deepEqual(planSession(collection, { day: DAY }), [2]);
    assert.deepEqual(planSession(collection, { day: DAY, deck: "other" }), []);
  });

  it("brings a card back at the end when it was not known", () => {
    const session = createSession(collectionOf(2), { day: DAY });
    session.answer("again");
    assert.equal(session.current().id, 2);
    session.answer("easy");
    assert.equal(session.current().id, 1);
    session.answer("good");
    assert.equal(session.current(), undefined);
    assert.equal(session.done, 3);
    assert.throws(() => session.answer("good"), /over/);
  });

  it("takes answers back, one by one, with the log and the queue", () => {
    const before = collectionOf(2);
    const session = createSession(before, { day: DAY });
    session.answer("again");
    session.answer("good");
    assert.ok(session.undo() && session.undo());
    assert.equal(session.undo(), false);
    assert.deepEqual(session.collection, before);
    assert.equal(session.left, 2);
  });

  it("writes each answer into the log and refuses unknown grades", () => {
    const session = createSession(collectionOf(1), { day: DAY });
    assert.throws(() => session.answer("perfect"), /again, hard, good, easy/);
    session.answer("hard");
    assert.deepEqual(session.collection.log, [{ day: DAY, card: 1, grade: "hard", first: true }]);
  });
});
