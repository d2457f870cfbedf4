import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { ChunkBatch } from "../../activities/step/chunk-writer.ts";
import { appendChunks, readEvents } from "../../activities/store/events.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { resolveConfig } from "../../client/config/config.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

it("pieces of many sessions are written in one statement, in order; those too late are dropped", async () => {
  const { store } = database;
  const ids = Array.from({ length: 3 }, () => `s-${randomUUID()}`);
  for (const id of ids) await createSession(store, { id, task: "t", config: resolveConfig({}, {}, "/").run });
  const pieces = (sessionId: string, ...texts: string[]) => ({
    sessionId,
    epoch: 1,
    step: 1,
    attempt: 1,
    chunks: texts.map((text) => ({ chunkType: "text" as const, text })),
  });
  await store.pool.query(
    `insert into stored_messages (session_id, sequence, position, epoch, step, slot, role, kind, content, token_count)
     values ($1, 3, 3, 1, 1, 'assistant', 'assistant', 'answer', '[]', 0)`,
    [ids[2]],
  );
  await appendChunks(
    store,
    ids.map((id) => pieces(id, `${id} a`, `${id} b`)),
  );
  await appendChunks(store, [pieces(ids[0]!, `${ids[0]} c`)]);
  const read = async (id: string | undefined) =>
    (await readEvents(store.db, id ?? "", 0)).map(({ seq, data }) => [seq, (data as { text: string }).text]);
  expect(await read(ids[0])).toEqual([
    [1, `${ids[0]} a`],
    [2, `${ids[0]} b`],
    [3, `${ids[0]} c`],
  ]);
  expect(await read(ids[1])).toEqual([
    [1, `${ids[1]} a`],
    [2, `${ids[1]} b`],
  ]);
  expect(await read(ids[2])).toEqual([]);
});

it("text that Postgres refuses costs only the pieces of its own session", async () => {
  const { store } = database;
  const batch = new ChunkBatch((answers) => appendChunks(store, answers));
  const answers = ["s-good", "s-bad"].map((name) => {
    const chunks = [{ chunkType: "text" as const, text: name === "s-bad" ? "a\u0000b" : "kept" }];
    const at = { sessionId: `${name}-${randomUUID()}`, epoch: 1, step: 1, attempt: 1 };
    return { at, take: () => chunks, writing: Promise.resolve() };
  });
  const { run: config } = resolveConfig({}, {}, "/");
  for (const { at } of answers) await createSession(store, { id: at.sessionId, task: "t", config });
  batch.write(answers);
  await Promise.all(answers.map(({ writing }) => writing));
  const read = await Promise.all(answers.map(({ at }) => readEvents(store.db, at.sessionId, 0)));
  expect(read.map((events) => events.length)).toEqual([1, 0]);
});
