/** When a session takes what a server lists by now. */
import { expect, test } from "vitest";
import type { McpToolEntry } from "../../activities/contract/tools.ts";
import { digestTools, noteListed, withChangedTools } from "../../activities/step/catalogues.ts";
import { keepCatalogue, loadCatalogues } from "../../activities/store/mcp.ts";
import type { Session } from "../../activities/store/sessions.ts";
import { sessionEvents } from "../support/session-events.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

const listOf = (...names: string[]): McpToolEntry[] =>
  names.map((name) => ({ name, description: name, inputSchema: {} }));

test("a new list is reported once, and applied at the next round or a person's message", async () => {
  const { store } = database;
  const id = "changing";
  await store.pool.query(`insert into sessions (id, task, config) values ($1, 't', '{}')`, [id]);
  await store.pool.query(`insert into cursors (session_id) values ($1)`, [id]);
  const deps = { store, sanitizer: { clean: String } as never };
  const load = async () =>
    ({
      id,
      epoch: 1,
      hasWaiting: false,
      catalogues: await loadCatalogues(store.db, id),
    }) as unknown as Session;
  const first = listOf("a", "b");
  await keepCatalogue(
    store.db,
    { id, epoch: 1 },
    { server: "s", era: "1", tools: first, digest: digestTools(first) },
  );
  const note = async (...names: string[]) => {
    const [current] = await loadCatalogues(store.db, id);
    if (current)
      await noteListed(deps, { id, epoch: 1 }, current, { era: "1", tools: listOf(...names), step: 1 });
  };
  const changes = () => sessionEvents(store, id).dataOf("mcp:changed");
  const namesAt = async (at: { round?: number; isSaid?: boolean }) => {
    const before = { ...(await load()), hasWaiting: at.isSaid ?? false };
    const after = await withChangedTools(deps, before, { round: at.round ?? 0 });
    return { names: after.catalogues?.[0]?.tools.map(({ name }) => name), isSame: after === before };
  };

  await note("a", "b");
  expect(await changes()).toEqual([]);
  await Promise.all([note("b", "c"), note("b", "c")]);
  expect(await changes()).toEqual([{ server: "s", added: ["c"], removed: ["a"] }]);
  expect((await load()).catalogues?.[0]?.next).toMatchObject({ round: 0, removed: ["a"] });
  expect(await namesAt({ round: 0 })).toEqual({ names: ["a", "b"], isSame: true });
  expect(await namesAt({ round: 1 })).toEqual({ names: ["b", "c"], isSame: false });
  expect(await namesAt({ round: 2 })).toEqual({ names: ["b", "c"], isSame: true });

  await note("d");
  await note("b", "c");
  expect((await changes()).at(-1)).toEqual({ server: "s", added: [], removed: [] });
  expect(await namesAt({ round: 9, isSaid: true })).toEqual({ names: ["b", "c"], isSame: true });
  await note("d");
  expect(await namesAt({ isSaid: true })).toEqual({ names: ["d"], isSame: false });
});
