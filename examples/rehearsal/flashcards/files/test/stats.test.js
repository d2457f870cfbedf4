import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addCard, emptyCollection } from "../src/cards.js";
import { createSession } from "../src/session.js";
import { countCards, forecast, retention, streak } from "../src/stats.js";
import { statsText } from "../src/stats-text.js";

const DAY = "2026-03-01";
function reviewed(...grades) {
  let { collection } = addCard(emptyCollection(), { deck: "d", front: "f", back: "b" }, DAY);
  for (const grade of grades) {
    const [card] = collection.cards;
    const session = createSession(collection, { day: card.schedule.due });
    session.answer(grade);
    collection = session.collection;
  }
  return collection;
}
const entry = (day, grade, first = false) => ({ day, card: 1, grade, first });

describe("statistics", () => {
  it("count cards by state", () => {
    const collection = reviewed("good", "good", "good");
    assert.equal(collection.cards[0].schedule.interval, 15);
    assert.deepEqual(countCards(collection, "2026-12-01").total, {
      cards: 1,
      due: 1,
      new: 0,
      mature: 0,
      suspended: 0,
    });
    assert.equal(countCards(reviewed(), DAY).total.new, 1);
    assert.equal(countCards(reviewed("good", "good", "good", "good"), DAY).total.mature, 1);
  });

  it("leave first answers and old ones out of the retention", () => {
    const log = [
      entry(DAY, "again", true),
      entry(DAY, "good"),
      entry(DAY, "again"),
      entry("2025-01-01", "again"),
    ];
    assert.equal(retention({ log }, { day: DAY }), 0.5);
    assert.equal(retention({ log: [entry(DAY, "good", true)] }, { day: DAY }), undefined);
  });

  it("count a streak over midnight, until a day is missed", () => {
    const log = ["2026-02-25", "2026-02-27", "2026-02-28"].map((day) => entry(day, "good"));
    assert.equal(streak({ log }, "2026-03-01"), 2);
    assert.equal(streak({ log }, "2026-02-28"), 2);
    assert.equal(streak({ log }, "2026-03-02"), 0);
  });

  it("foretell the coming days; what is overdue counts today", () => {
    const collection = reviewed("good");
    assert.deepEqual(
      forecast(collection, { day: DAY, days: 3 }).map((one) => one.cards),
      [0, 1, 0],
    );
    assert.equal(forecast(collection, { day: "2026-06-01" })[0].cards, 1);
    assert.match(statsText(collection, DAY), /Coming reviews:/);
  });
});
