/** The worker's own disk is full: this file's small disk holds everything that a worker writes. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadWorkflowBundle } from "../../worker/bundle.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { expectMarkerSteps, markerSteps } from "../support/marker-steps.ts";
import { mountSmallDisk, noSmallDisk, type SmallDisk } from "../support/small-disk.ts";
import { useDatabase } from "../support/test-database.ts";

describe.skipIf(noSmallDisk !== undefined)(
  `a worker whose disk is full${noSmallDisk === undefined ? "" : ` (skipped: ${noSmallDisk})`}`,
  () => {
    let disk: SmallDisk;
    const database = useDatabase();
    beforeEach(async () => {
      disk = await mountSmallDisk("512k");
      disk.fill();
    });
    afterEach(() => disk.remove());

    it(
      "starts, works and drains: lines of its log are lost, and written again when there is room",
      { tags: ["R24", "invariant-13"] },
      async () => {
        const session = await startKillableSession(database, markerSteps(4));
        const logFile = join(disk.folder, "worker.log");
        const files = { logFile, readyFile: join(disk.folder, "ready") };
        const worker = await session.startWorker({ LONGHAUL_LOG_LEVEL: "debug" }, files);
        expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 6 });
        await expectMarkerSteps(database.store, session.id, 4);
        expect(worker.alive).toBe(true);
        expect(readFileSync(logFile, "utf8")).toBe("");
        disk.empty();
        expect(await worker.terminate()).toBe(0);
        expect(readFileSync(logFile, "utf8")).toContain("worker ended");
        await checkSession(session.services, session);
      },
    );

    it(
      "keeps the workflow code in memory, says why, and leaves no partial file",
      { tags: ["R24"] },
      async () => {
        const bundle = await loadWorkflowBundle(disk.folder);
        expect(bundle).toMatchObject({
          code: expect.stringContaining("codingAgent"),
          notKept: expect.stringContaining("ENOSPC"),
        });
        expect(readdirSync(disk.folder)).toEqual(["ballast"]);
      },
    );
  },
);
