/** In which spellings a leaked text is taken out of what is stored. */
import { expect, it } from "vitest";
import { saveBlobFor } from "../../activities/store/blobs.ts";
import { readFamily } from "../../activities/store/delete-session.ts";
import { appendEvents } from "../../activities/store/events.ts";
import { purgeText } from "../../activities/store/purge.ts";
import { toolOutputs } from "../../activities/store/schema/index.ts";
import { createSessionMemory } from "../../activities/store/transcript-search.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { runConfig } from "../support/agent-harness.ts";
import { wholeDatabase } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(2);
const config = runConfig();

const spellings: [string, (text: string) => string][] = [
  ["between a shell's quotes", (text) => text.replaceAll("-", `"'-'"`)],
  ["with backslashes", (text) => text.replace(/[ -]/g, "\\$&")],
  ["in base64", (text) => Buffer.from(text).toString("base64")],
  ["in hex", (text) => Buffer.from(text).toString("hex")],
  ["as in an address", (text) => encodeURIComponent(text)],
];

it.each(spellings)("a leaked text is taken out %s too, and nothing beside it", async (how, spell) => {
  const { store } = database;
  const { db } = store;
  const secret = "pass word-Zq81-xyz";
  const spelled = spell(secret);
  const id = `spelled ${how}`;
  const workspace = await packWorkspace([
    { kind: "file", path: "notes", mode: 0o644, bytes: Buffer.from(`before ${spelled} after`) },
  ]);
  const long = await saveBlobFor(db, id, {
    bytes: Buffer.from(`long ${how}: ${spelled}.`),
    mediaType: "text/plain",
  });
  await createSession(store, { id, task: `Run x ${spelled} please.`, config, parts: [long], workspace });
  const [begin, end] = [spelled.slice(0, 7), spelled.slice(7)];
  const output = { sessionId: id, handle: "s1c0" };
  await db.insert(toolOutputs).values([
    { ...output, part: 0, offset: 0, content: `out ${begin}` },
    { ...output, part: 1, offset: 4 + begin.length, content: `${end} end` },
  ]);
  const input = JSON.stringify({ command: `login ${spelled} now` });
  const call = { callId: "c", index: 0, name: "bash", about: "login", inputCut: input };
  await appendEvents(db, id, 1, [{ type: "llm:tool-call", step: 1, data: call }]);
  const purged = await purgeText(db, await readFamily(db, id), secret);
  expect(purged?.saves).toEqual([{ id, steps: [0] }]);
  const rows = (await wholeDatabase(store)).split("\n").filter((row) => row.includes(id));
  expect(rows.join("\n")).toContain("Run x [purged] please.");
  expect(rows.join("\n")).toContain("login [purged] now");
  expect(rows.filter((row) => row.includes(end.slice(-6)))).toEqual([]);
  const read = await createSessionMemory(db, id).readOutput("s1c0", 0, 1_000);
  expect(read?.text).toBe(`out ${"*".repeat(spelled.length)} end`);
});
