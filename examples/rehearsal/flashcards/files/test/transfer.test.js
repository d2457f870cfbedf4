import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { emptyCollection } from "../src/cards.js";
import { exportCsv, importCsv } from "../src/transfer.js";

const at = { deck: "Imported", day: "2026-03-01" };

describe("import and export", () => {
  it("reads the example as other programs write it", async () => {
    const text = await readFile(new URL("../examples/spanish.csv", import.meta.url), "utf8");
    const { collection, added, skipped } = importCsv(emptyCollection(), text, { ...at, deck: "Spanish" });
    assert.deepEqual([added, skipped], [5, []]);
    assert.equal(collection.cards[1].front, "comer, beber");
    assert.deepEqual(collection.cards[0].tags, ["home", "noun"]);
  });

  it("leaves out doubles and broken rows and says which", () => {
    const { added, skipped } = importCsv(emptyCollection(), "a,1\nA,2\n,3\nb,4,x:y\nc,5\n", at);
    assert.equal(added, 2);
    assert.deepEqual(
      skipped.map((one) => one.row),
      [2, 3, 4],
    );
    assert.match(skipped[0].reason, /there already/);
  });

  it("follows the order that a first line sets, and a deck of the row", () => {
    const { collection } = importCsv(emptyCollection(), "Deck,Back,Front\nFrench,the house,la maison\n", at);
    const [card] = collection.cards;
    assert.deepEqual([card.deck, card.front, card.back], ["French", "la maison", "the house"]);
  });

  it("gives the same cards back after a round trip", () => {
    const first = importCsv(emptyCollection(), 'a,"x, ""y""\nz",t1 t2,D\n', at).collection;
    const second = importCsv(emptyCollection(), exportCsv(first.cards), at).collection;
    assert.deepEqual(second, first);
  });
});
