/** Postgres accepts and does not answer: its processes are stopped. This file has its own server. */
import { expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { expectMarkerSteps, markerSteps } from "../support/marker-steps.ts";
import { startOwnPostgres } from "../support/own-postgres.ts";
import { untilPending } from "../support/waits.ts";
import { perTest } from "../support/per-file.ts";

const postgres = perTest(startOwnPostgres);

it(
  "a worker whose Postgres hangs says so, retries, and continues: every step is stored once",
  { tags: ["R17", "R24", "invariant-13"] },
  async () => {
    const session = await startKillableSession(postgres, markerSteps(6), {
      environment: { DATABASE_TIMEOUT_MS: "3000" },
    });
    const worker = await session.startWorker();
    await eventually("step 3 is asked for", () => session.model.requests.length >= 3, 120_000);
    const resume = await postgres.pause();
    const pending = await untilPending(
      session,
      "the Web UI shows a second attempt with its reason",
      ({ attempt, lastFailure }) => (attempt ?? 0) >= 2 && !!lastFailure?.applicationFailureInfo,
    );
    expect(pending.lastFailure?.applicationFailureInfo?.type).toBe("DatabaseUnavailable");
    expect(pending.lastFailure?.message).toMatch(/^Postgres: .*it is tried again/);
    expect(worker.alive, worker.log()).toBe(true);
    resume();
    expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 8 });
    expect(worker.alive, worker.log()).toBe(true);
    await expectMarkerSteps(postgres.store, session.id, 6);
    await checkSession(session.services, session, { kills: 3 });
  },
);
