import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { addCard, emptyCollection } from "../src/cards.js";
import { load, save } from "../src/store.js";

let folder;
let path;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "recall-"));
  path = join(folder, "cards.json");
});
afterEach(() => rm(folder, { recursive: true }));

const some = addCard(
  emptyCollection(),
  { deck: "d", front: "é 漢字 🎴", back: "b" },
  "2026-03-01",
).collection;

describe("the store", () => {
  it("gives back what was saved, in any script", async () => {
    await save(path, some);
    assert.deepEqual(await load(path), some);
  });

  it("takes a file that is not there for an empty collection", async () => {
    assert.deepEqual(await load(path), emptyCollection());
  });

  it("leaves no temporary file behind, also when it fails", async () => {
    await save(path, some);
    await assert.rejects(
      save(path, { ...some, toJSON: () => assert.fail("full disk") }),
      /cannot be written/,
    );
    assert.deepEqual(await readdir(folder), ["cards.json"]);
    assert.deepEqual(await load(path), some);
  });

  it("is never half written, however many write at once", async () => {
    await Promise.all(Array.from({ length: 20 }, () => save(path, some)));
    assert.deepEqual(await load(path), some);
  });

  it("refuses a damaged file and does not touch it", async () => {
    for (const text of ["{", "[]", '{"version":1}', '{"version":2}']) {
      await writeFile(path, text);
      await assert.rejects(load(path), { name: "StoreError" });
      assert.equal(await readFile(path, "utf8"), text);
    }
  });

  it("names the card whose schedule is broken", async () => {
    const broken = { ...some, cards: [{ ...some.cards[0], schedule: { due: "soon" } }] };
    await writeFile(path, JSON.stringify(broken));
    await assert.rejects(load(path), /漢字.*no valid schedule/);
  });
});
