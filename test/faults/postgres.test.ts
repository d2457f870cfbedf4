/** Postgres goes away and comes back in every manner. Each test has its own server, and mostly waits. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it, type TestContext } from "vitest";
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession, type KillableSession } from "../support/killable-session.ts";
import { expectMarkerSteps, markerSteps } from "../support/marker-steps.ts";
import { startOwnPostgres, type OwnPostgres } from "../support/own-postgres.ts";
import { scriptedModel, type ModelScript } from "../support/scripted-model.ts";
import { mountSmallDisk, noSmallDisk } from "../support/small-disk.ts";
import { onServer } from "../support/services.ts";
import type { WorkerProcess } from "../support/worker-process.ts";
import { untilPending } from "../support/waits.ts";

type Context = Pick<TestContext, "onTestFinished">;

async function ownPostgres(
  { onTestFinished }: Context,
  ...options: Parameters<typeof startOwnPostgres>
): Promise<OwnPostgres> {
  const postgres = await startOwnPostgres(...options);
  onTestFinished(() => postgres.close());
  return postgres;
}

async function start(
  context: Context,
  postgres: OwnPostgres,
  script: ModelScript,
): Promise<{ session: KillableSession; worker: WorkerProcess }> {
  const session = await startKillableSession(postgres, script, { context });
  return { session, worker: await session.startWorker() };
}

const untilStep = (session: KillableSession, step: number) =>
  eventually(`step ${step} is asked for`, () => session.model.requests.length >= step, 120_000);

/** False if there is no sandbox yet. */
const hasWritten = ({ sandbox }: KillableSession, file: string): Promise<boolean> =>
  sandbox.infoArchive({ path: `/workspace/${file}` }).then(
    () => true,
    () => false,
  );

describe.concurrent("a worker whose Postgres", () => {
  it(
    "is restarted repeatedly continues, and every step is stored once",
    { tags: ["R16", "invariant-13"] },
    async (context) => {
      const postgres = await ownPostgres(context);
      const { session, worker } = await start(context, postgres, markerSteps(12));
      await untilStep(session, 2);
      for (let restart = 0; restart < 5; restart += 1) {
        await postgres.stop("fast");
        await postgres.start();
        // Busy again, at another point of a step each time.
        await sleep(1_500 + 370 * restart);
      }
      expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 14 });
      expect(worker.alive, worker.log()).toBe(true);
      await expectMarkerSteps(postgres.store, session.id, 12);
      await checkSession(session.services, session, { kills: 5 });
    },
  );

  it("loses its backends to kill -9 continues", { tags: ["R16", "A20"] }, async (context) => {
    const postgres = await ownPostgres(context);
    const { session, worker } = await start(context, postgres, markerSteps(6));
    for (let kill = 0; kill < 3; kill += 1) {
      await untilStep(session, 2 * kill + 1);
      const [victim] = await onServer(postgres.url, async (client) => {
        const { rows } = await client.query<{ pid: number }>(
          "select pid from pg_stat_activity where application_name ~ '^longhaul( |$)' order by state_change desc limit 1",
        );
        return rows;
      });
      // The postmaster then ends all others too and recovers.
      process.kill(victim?.pid ?? 0, "SIGKILL");
    }
    expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 8 });
    expect(worker.alive, worker.log()).toBe(true);
    await expectMarkerSteps(postgres.store, session.id, 6);
    await checkSession(session.services, session, { kills: 3 });
  });

  it(
    "refuses connections for a while backs off, says so in the Web UI, and continues by itself",
    { tags: ["R17"] },
    async (context) => {
      const postgres = await ownPostgres(context);
      const { session, worker } = await start(context, postgres, markerSteps(4));
      await untilStep(session, 2);
      await postgres.stop("immediate");
      const pending = await untilPending(
        session,
        "the Web UI shows a third attempt with its reason",
        ({ attempt, lastFailure }) => (attempt ?? 0) >= 3 && !!lastFailure?.applicationFailureInfo,
      );
      expect(pending.lastFailure?.applicationFailureInfo?.type).toBe("DatabaseUnavailable");
      expect(pending.lastFailure?.message).toMatch(/^Postgres: .*ECONNREFUSED.*it is tried again/);
      expect(pending.lastFailure?.message?.length).toBeLessThan(1_000);
      const waits = Number(pending.currentRetryInterval?.seconds ?? 0);
      expect(waits).toBeGreaterThanOrEqual(2);
      await postgres.start();
      expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 6 });
      expect(worker.alive, worker.log()).toBe(true);
      await expectMarkerSteps(postgres.store, session.id, 4);
      await checkSession(session.services, session, { kills: 1 });
    },
  );

  it(
    "is down when the run is cancelled waits for it, then saves the files and ends the run",
    { tags: ["R24"] },
    async (context) => {
      const postgres = await ownPostgres(context);
      const script = scriptedModel().calls("bash", { command: "echo kept > kept.txt; sleep 3; echo done" });
      const { session, worker } = await start(context, postgres, script);
      // Not by its row, which says "running" before there is a sandbox to save.
      await eventually("the command has written its file", () => hasWritten(session, "kept.txt"), 120_000);
      await postgres.stop("immediate");
      await session.handle.cancel();
      await untilPending(
        session,
        "the finaliser has tried more often than a sandbox is waited for",
        ({ activityType, attempt }) => activityType?.name === "closeSandbox" && (attempt ?? 0) >= 5,
      );
      await postgres.start();
      await expect(session.handle.result()).rejects.toThrow();
      expect((await session.handle.describe()).status.name).toBe("CANCELLED");
      expect(worker.alive, worker.log()).toBe(true);
      const files = await readWorkspace(postgres.store.db, session.id);
      expect(files?.map((file) => file.path)).toContain("kept.txt");
      await checkSession(session.services, session, { kills: 1 });
    },
  );
});

describe.concurrent("a Postgres with few connections", () => {
  it(
    "that are all taken are waited for, and the run continues when some are free",
    { tags: ["R16", "R24"] },
    async (context) => {
      const narrow = await ownPostgres(context, {
        settings: ["max_connections=14", "superuser_reserved_connections=1"],
      });
      const { session, worker } = await start(context, narrow, markerSteps(3));
      await untilStep(session, 2);
      // Others take all free connections, and those that the worker releases.
      const taken: pg.Client[] = [];
      const takeAll = async () => {
        for (;;) {
          const client = new pg.Client({ connectionString: narrow.url });
          client.on("error", () => undefined);
          try {
            await client.connect();
          } catch {
            return;
          }
          taken.push(client);
        }
      };
      await narrow.store.pool.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name ~ '^longhaul( |$)' and pid <> pg_backend_pid()",
      );
      const pending = await eventually(
        "the Web UI shows the reason",
        async () => {
          await takeAll();
          const { raw } = await session.handle.describe();
          return raw.pendingActivities?.find((activity) => activity.lastFailure?.applicationFailureInfo);
        },
        120_000,
      );
      expect(pending.lastFailure?.applicationFailureInfo?.type).toBe("DatabaseUnavailable");
      await Promise.all(taken.map((client) => client.end()));
      expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 5 });
      expect(worker.alive, worker.log()).toBe(true);
      await expectMarkerSteps(narrow.store, session.id, 3);
    },
  );
});

describe.skipIf(noSmallDisk !== undefined)(
  `a disk of Postgres'${noSmallDisk === undefined ? "" : ` (skipped: ${noSmallDisk})`}`,
  { concurrent: true },
  () => {
    it(
      "that is full is waited for; no step is half stored, and the run continues with room",
      { tags: ["R24"] },
      async (context) => {
        const { onTestFinished } = context;
        const disk = await mountSmallDisk("100m");
        onTestFinished(() => disk.remove());
        // Its log is on another disk: a full log ends the server itself, which the restart tests above cover.
        const wal = mkdtempSync(join(tmpdir(), "longhaul-wal-"));
        const small = await startOwnPostgres({ folder: disk.folder, walFolder: wal });
        onTestFinished(async () => {
          await small.close();
          rmSync(wal, { recursive: true, force: true });
        });
        const { session, worker } = await start(context, small, markerSteps(12, 0.1));
        await untilStep(session, 2);
        const pending = await eventually(
          "the Web UI shows that the disk is full",
          async () => {
            // Repeatedly: Postgres frees a block now and then.
            disk.fill();
            const { raw } = await session.handle.describe();
            return raw.pendingActivities?.find((activity) =>
              activity.lastFailure?.message?.includes("space"),
            );
          },
          120_000,
        );
        expect(pending.lastFailure?.applicationFailureInfo?.type).toBe("DatabaseUnavailable");
        expect(pending.lastFailure?.message).toMatch(/No space left on device \(53100\)/);
        disk.empty();
        expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 14 });
        expect(worker.alive, worker.log()).toBe(true);
        await expectMarkerSteps(small.store, session.id, 12);
        await checkSession(session.services, session, { kills: 10 });
      },
    );
  },
);
