/** What a session's own past is searched by: words, over messages and the outputs that were cut. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSessionMemory, searchTranscript } from "../../activities/store/transcript-search.ts";
import { createDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { createTestDatabase, type TestDatabase } from "../support/test-database.ts";

/** 60,000 characters with a line in the middle that is in no message. */
const LONG = ["the BURIED 🎈 treasure", "a second treasure"].map((buried) => {
  const filler = "filler 0123456789 0123456789\n".repeat(1_100);
  return `${filler}${buried}\n${filler}`;
});

let database: TestDatabase;
let agent: DirectAgent;
beforeAll(async () => {
  database = await createTestDatabase(5);
  const script = scriptedModel()
    .answers(text("The server listens on port 8080, says nginx."), call("bash", { command: "cat 1.txt" }))
    .answers(text('A path: C:\\temp, 100% of "it"\nall_of it'), call("bash", { command: "cat 2.txt" }))
    .says("Done.");
  agent = await createDirectAgent(database, script, { task: "Find the port of the server." });
  for (const [index, content] of LONG.entries())
    await agent.sandbox.files.write(`${index + 1}.txt`, Buffer.from(content));
  for (const step of [1, 2, 3]) await agent.step(step);
});
afterAll(async () => {
  await agent.close();
  await database.drop();
});

const find = async (...words: string[]) =>
  (await searchTranscript(database.store.db, agent.id, words, { limit: 20 })).hits;
const rolesOf = async (...words: string[]) =>
  (await find(...words)).map(({ role, step }) => `${role} ${step}`);

describe("search_history", () => {
  it("finds messages that hold all words, in any order and case, newest first", async () => {
    expect(await rolesOf("port")).toEqual(["assistant 1", "user 0"]);
    expect(await rolesOf("NGINX", "port")).toEqual(["assistant 1"]);
    expect(await rolesOf("nginx", "treasure")).toEqual([]);
    const [found] = await find("8080");
    expect(found?.excerpt).toContain("listens on port 8080");
  });

  it("finds words in the middle of an output that was cut, and says where to read on", async () => {
    const [found, ...more] = await find("treasure", "buried");
    expect(more).toEqual([]);
    expect(found).toMatchObject({ role: "tool", step: 1, output: { handle: "s1c0" } });
    expect(found?.excerpt).toContain("the BURIED 🎈 treasure");
    const { handle = "", offset = 0 } = found?.output ?? {};
    const page = await createSessionMemory(database.store.db, agent.id).readOutput(handle, offset, 20);
    // Signs beyond the BMP before it count twice in a page, so it may stand a little further on.
    expect(page?.text).toMatch(/^ ?treasure\nfiller/);
  });

  it("tells a cut result once, also if its message and its whole output hold the words", async () => {
    const found = await find("filler", "treasure");
    expect(found.map(({ step, output }) => [step, output?.handle])).toEqual([
      [2, "s2c0"],
      [1, "s1c0"],
    ]);
  });

  it("takes every sign literally and finds no word in the frame of a row", async () => {
    expect(await rolesOf("100%", "all_of", String.raw`C:\temp`, '"it"')).toEqual(["assistant 2"]);
    expect(await rolesOf("1%0")).toEqual([]);
    expect(await rolesOf("allXof")).toEqual([]);
    for (const frame of ["toolCallId", "tool-result", "reasoning"])
      expect(await rolesOf(frame), frame).toEqual([]);
  });

  it("goes through the newest outputs up to a bound, and says how many it left out", async () => {
    const bounded = await searchTranscript(database.store.db, agent.id, ["treasure"], {
      limit: 20,
      maxSearchedChars: 1,
    });
    expect(bounded.hits.map(({ output }) => output?.handle)).toEqual(["s2c0"]);
    expect(bounded.skippedOutputs).toBe(1);
    const nothing = await searchTranscript(database.store.db, agent.id, ["no such word"], {
      limit: 20,
      maxSearchedChars: 1,
    });
    expect(nothing).toEqual({ hits: [], skippedOutputs: 1 });
  });
});
