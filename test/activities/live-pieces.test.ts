import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { appendChunks, readEvents } from "../../activities/store/events.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { resolveConfig } from "../../client/config/config.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

it("pieces of many sessions are written in one statement, each in its session's order; those of a stored answer are dropped", async () => {
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
