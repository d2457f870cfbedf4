/** The clean-up's look for questions that runs wait for and Postgres lacks: no run that was silent once is forgotten. */
import { expect, it } from "vitest";
import { appendEvents } from "../../activities/store/events.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { resolveConfig } from "../../client/config/config.ts";
import { createQuestionLook } from "../../worker/reaper.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

/** Sessions that stand still, each of which waits for a question that no row has. */
async function standingStill(count: number): Promise<string[]> {
  const { store } = database;
  const ids = Array.from({ length: count }, (_, place) => `look-${count}-${place}`);
  const { run: config } = resolveConfig({}, {}, "/");
  for (const id of ids) {
    await createSession(store, { id, task: "t", config });
    await appendEvents(store.db, id, 1, [{ type: "llm:thinking", step: 1, data: { model: "m" } }]);
  }
  await store.pool.query("update events set at = at - interval '5 minutes' where session_id = any($1)", [
    ids,
  ]);
  return ids;
}

/** Temporal, in which a run is silent as often as `silent` says of it. */
function temporalOf(ids: readonly string[], silent: Map<string, number>) {
  const queried: string[] = [];
  const asked: string[] = [];
  const client = {
    options: { namespace: "default" },
    withAbortSignal: <T>(_signal: AbortSignal, ask: () => Promise<T>) => ask(),
    workflowService: {
      listWorkflowExecutions: async () => ({
        executions: ids.map((workflowId) => ({ execution: { workflowId } })),
      }),
    },
    workflow: {
      getHandle: (id: string) => ({
        query: async () => {
          queried.push(id);
          const left = silent.get(id) ?? 0;
          silent.set(id, left - 1);
          if (left > 0) throw new Error("no worker has room for it");
          return { questions: [{ id: "s1c0" }] };
        },
        signal: async () => void asked.push(id),
      }),
    },
  };
  return { client: client as never, queried, asked };
}

const logger = { warn: () => undefined } as never;

it("asks runs that did not answer again in later rounds, a few in each, all others once", async () => {
  const ids = await standingStill(60);
  const silent = new Map(ids.map((id, place) => [id, place % 5 === 0 ? 2 : 0]));
  const { client, queried, asked } = temporalOf(ids, silent);
  const look = createQuestionLook();
  const perRound: number[] = [];
  for (let round = 0; round < 12; round += 1) {
    const before = queried.length;
    await look({ client, store: database.store, logger });
    perRound.push(queried.length - before);
  }
  expect(asked.toSorted()).toEqual(ids.toSorted());
  expect(perRound.slice(0, 2)).toEqual([50, 15]);
  expect(perRound.slice(2).every((count) => count <= 5)).toBe(true);
  // The 48 that answer once, and the 12 others three times.
  expect(queried).toHaveLength(48 + 36);
});

it("does not ask again for a run that went on while it was silent", async () => {
  const [id = ""] = await standingStill(1);
  const { client, queried, asked } = temporalOf([id], new Map([[id, 1]]));
  const look = createQuestionLook();
  await look({ client, store: database.store, logger });
  await appendEvents(database.store.db, id, 1, [{ type: "llm:thinking", step: 2, data: { model: "m" } }]);
  await look({ client, store: database.store, logger });
  expect(queried).toEqual([id]);
  expect(asked).toEqual([]);
});
