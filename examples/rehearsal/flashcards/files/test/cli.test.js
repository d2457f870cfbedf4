import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { runCli } from "../src/cli.js";

let folder;
let env;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "recall-"));
  env = { RECALL_FILE: join(folder, "cards.json"), RECALL_TODAY: "2026-03-01" };
});
afterEach(() => rm(folder, { recursive: true }));

async function recall(line, { answers = [], today } = {}) {
  const out = [];
  const err = [];
  const io = {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
    ask: async () => answers.shift(),
  };
  const outer = { env: { ...env, ...(today ? { RECALL_TODAY: today } : {}) }, now: () => new Date(), fetch };
  const code = await runCli(Array.isArray(line) ? line : line.split(" "), io, outer);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

describe("recall", () => {
  it("adds, lists, edits, suspends and removes cards", async () => {
    assert.equal((await recall(["add", "Spanish", "la casa", "the house", "--tags", "noun,home"])).code, 0);
    assert.match(
      (await recall("list tag:noun")).out,
      /1 {2}la casa = the house {2}\[Spanish #home #noun\] due 2026-03-01/,
    );
    assert.match((await recall(["edit", "1", "--back=the home"])).out, /the home/);
    await recall("suspend 1");
    assert.match((await recall("list is:due")).out, /0 of 1 cards/);
    await recall("remove 1");
    assert.match((await recall("list")).out, /0 of 0 cards/);
  });

  it("reviews what is due and keeps the answers", async () => {
    await recall("add d one 1");
    await recall("add d two 2");
    const first = await recall("review", { answers: ["", "3", "", "1", "", "4"] });
    assert.match(first.out, /3 answers, 0 left/);
    assert.match((await recall("review")).out, /Nothing is due/);
    assert.match((await recall("stats")).out, /Streak: 1 day\n/);
    const next = await recall("review", { answers: ["", "g", "q"], today: "2026-03-02" });
    assert.match(next.out, /good: again in 6 days/);
    assert.match(next.out, /1 answers, 1 left/);
  });

  it("keeps what was answered when the input ends in between", async () => {
    await recall("add d one 1");
    await recall("add d two 2");
    assert.equal((await recall("review", { answers: ["", "9", "good?", "3"] })).code, 0);
    assert.match((await recall("list")).out, /one = 1 {2}\[d\] due 2026-03-02/);
  });

  it("imports, exports and generates", async () => {
    const csv = join(folder, "cards.csv");
    await writeFile(csv, "a,1\nb,2\na,3\n");
    const imported = await recall(["import", csv, "--deck", "d"]);
    assert.match(imported.out, /2 cards added, 1 left out/);
    assert.match(imported.err, /Row 3/);
    const text = join(folder, "notes.txt");
    await writeFile(text, "Ohm: the unit of resistance\n");
    assert.match(
      (await recall(["generate", text, "--deck", "d"], { answers: ["n"] })).out,
      /1 new cards by "rules"/,
    );
    assert.match((await recall("list")).out, /of 2 cards/);
    await recall(["generate", text, "--deck", "d", "--yes"]);
    await recall(["export", csv, "--query", "tag:generated"]);
    assert.equal(
      await readFile(csv, "utf8"),
      "front,back,tags,deck\r\nOhm,the unit of resistance,generated,d\r\n",
    );
  });

  it("says how it is used: exit code 2 for a wrong call, 1 for what fails", async () => {
    assert.match((await recall("help")).out, /review \[DECK\]/);
    for (const line of ["fly", "add d one", "list --all", "edit x", "review --new many"]) {
      const usual = await recall(line);
      // A query may hold anything that is no option, so `list --all` is a search for it.
      assert.equal(usual.code, line === "list --all" ? 0 : 2, line);
    }
    assert.equal((await recall("remove 7")).code, 1);
    await writeFile(env.RECALL_FILE, "{");
    assert.match((await recall("list")).err, /is damaged/);
  });
});
