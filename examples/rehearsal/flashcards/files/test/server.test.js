import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { addCard, emptyCollection } from "../src/cards.js";
import { startServer } from "../src/server.js";
import { load, save } from "../src/store.js";

const DAY = "2026-03-01";
let folder;
let path;
let server;
let address;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "recall-"));
  path = join(folder, "cards.json");
  const card = { deck: "A & B", front: "<script>alert(1)</script>", back: "the back" };
  await save(path, addCard(emptyCollection(), card, DAY).collection);
  server = await startServer({ path, port: 0, today: DAY });
  address = `http://127.0.0.1:${server.port}`;
});
afterEach(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

const get = async (page) => (await fetch(address + page)).text();
const answer = (form, headers = {}) =>
  fetch(`${address}/answer`, {
    method: "POST",
    body: new URLSearchParams(form),
    headers,
    redirect: "manual",
  });

describe("the web page", () => {
  it("lists decks with what waits", async () => {
    const page = await get("/");
    assert.match(page, /A &amp; B/);
    assert.match(page, /1 cards wait/);
  });

  it("shows the front first, escaped, and the back when asked", async () => {
    const front = await get("/review?deck=A%20%26%20B");
    assert.match(front, /&lt;script&gt;/);
    assert.ok(!front.includes("<script>") && !front.includes("the back"));
    assert.match(await get("/review?show=1"), /the back/);
  });

  it("takes an answer once and goes on", async () => {
    const response = await answer({ id: "1", grade: "good" });
    assert.equal(response.status, 303);
    assert.equal((await load(path)).cards[0].schedule.due, "2026-03-02");
    await answer({ id: "1", grade: "easy" });
    assert.equal((await load(path)).log.length, 1);
    assert.match(await get("/review"), /Nothing is due/);
  });

  it("refuses answers from another page, and pages that are not there", async () => {
    const foreign = await answer({ id: "1", grade: "good" }, { origin: "http://elsewhere.example" });
    assert.equal(foreign.status, 403);
    assert.equal((await load(path)).log.length, 0);
    assert.equal((await fetch(`${address}/nothing`)).status, 404);
  });
});
