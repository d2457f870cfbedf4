/** What an activity reads in parallel with its session's row is what stands once its run may write. */
import { expect, it } from "vitest";
import { enterReading } from "../../activities/runtime/enter-session.ts";
import type { SessionRuns } from "../../activities/contract/session-runs.ts";
import { loadView } from "../../activities/store/load-view.ts";
import { runInCharge, takeOver } from "../../activities/store/runs.ts";
import { summaryText, work } from "../support/compacting.ts";
import { compactingSession } from "../support/compacting-session.ts";
import { useDatabase } from "../support/test-database.ts";
import { loneRun, silentAnnouncements } from "../support/lone-deps.ts";

const database = useDatabase();

it("a run that takes the session over back before a round reads the view without it; one in charge reads once", async () => {
  const one = await compactingSession(database, work(30), summaryText());
  const before = (await one.view()).map(({ sequence }) => sequence);
  expect(await one.summarize()).toMatchObject({ kind: "compacted", round: 1 });
  let reads = 0;
  const read = () => {
    reads += 1;
    return loadView(database.store.db, one.id);
  };
  const [round] = await one.rounds();
  const at = { step: round?.step ?? 0, phase: "model", round: 0 } as const;
  const enter = (runId: string) =>
    enterReading(
      { store: database.store, sessionRuns: loneRun, announcements: silentAnnouncements },
      { sessionId: one.id, runId },
      at,
      read,
    );
  const [, seen] = await enter("run-1");
  expect(reads).toBe(1);
  expect(seen.length).toBeLessThan(before.length);
  const [session, again] = await enter("run-2");
  expect(reads).toBe(3);
  expect(session).toMatchObject({ runId: "run-2", epoch: 2 });
  expect(again.filter(({ kind }) => kind !== "notice").map(({ sequence }) => sequence)).toEqual(before);
});

it("while Temporal is asked about other runs nothing waits for the session's row, and a run that was replaced meanwhile claims nothing", async () => {
  const one = await compactingSession(database, work(3), summaryText());
  const { store } = database;
  const at = { step: 2, phase: "model" } as const;
  const [asking, answers] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let current = "run-2";
  const sessionRuns: SessionRuns = {
    async isCurrent(_session, runId) {
      const isCurrent = current === runId;
      if (runId === "run-2" && isCurrent) asking.resolve();
      if (runId === "run-2") await answers.promise;
      return isCurrent;
    },
    isRunning: async () => false,
    cancel: async () => undefined,
    unkept: async () => [],
  };
  const late = takeOver({ store, sessionRuns }, { sessionId: one.id, runId: "run-2" }, at);
  await asking.promise;
  current = "run-3";
  const taken = await takeOver({ store, sessionRuns }, { sessionId: one.id, runId: "run-3" }, at);
  expect(taken).toMatchObject({ wentBack: true });
  answers.resolve();
  expect(await late).toBe("superseded");
  expect(await runInCharge(store.db, one.id)).toBe("run-3");
});
