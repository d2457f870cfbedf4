/** A server that suggests short histories: the session continues as new each time. */
import { expect, it } from "vitest";
import { runIdsOf } from "../../activities/store/runs.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { startOwnTemporal } from "../support/own-temporal.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { answersOf, resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { perFile } from "../support/per-file.ts";

const SUGGESTED_EVENTS = 60;
const STEPS = 16;

const database = useDatabase(5);
const temporal = perFile(() =>
  startOwnTemporal([`limit.historyCount.suggestContinueAsNew=${SUGGESTED_EVENTS}`]),
);

it("is followed at the next boundary, before our own cap: runs are short, steps run once", async () => {
  const script = scriptedModel().forever(({ items }) => {
    const step = items.filter((item) => item.type === "call").length + 1;
    return step > STEPS
      ? { parts: [text("Done.")] }
      : { parts: [call("bash", { command: `echo ${step} >> n.txt; cat n.txt` })] };
  });
  const session = await startKillableSession(database, script, { temporalAddress: temporal.address });
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed", result: "Done." });

  const runIds = await runIdsOf(database.store.db, session.id);
  expect(runIds.length).toBeGreaterThanOrEqual(3);
  const [last, ...earlier] = await Promise.all(
    runIds.map(async (runId) => {
      const run = session.services.client.workflow.getHandle(session.id, runId);
      const { events } = await run.fetchHistory();
      return events ?? [];
    }),
  );
  for (const events of earlier) {
    const suggested = events.findIndex(
      (event) => event.workflowTaskStartedEventAttributes?.suggestContinueAsNew === true,
    );
    expect(events.at(-1)?.workflowExecutionContinuedAsNewEventAttributes).toBeTruthy();
    expect(suggested).toBeGreaterThan(0);
    // The rest of the step, the save, and the end of the run.
    expect(events.length - suggested).toBeLessThan(SUGGESTED_EVENTS);
  }
  expect(last?.at(-1)?.workflowExecutionCompletedEventAttributes).toBeTruthy();
  expect(await answersOf(database.store, session.id)).toHaveLength(STEPS + 1);
  const counted = Array.from({ length: STEPS }, (_, step) => step + 1).join("\n");
  expect((await resultTexts(database.store, session.id)).at(-1)).toBe(counted);
  await checkSession(session.services, session);
}, 300_000);
