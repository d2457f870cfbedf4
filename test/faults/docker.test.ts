/** The Docker engine is restarted during a run: this file has its own engine, so that no other test's sandboxes end. */
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { troubleOf } from "../../client/connect/describe-run.ts";
import { describedRun } from "../../temporal/runs.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { noOwnDocker, startOwnDocker } from "../support/own-docker.ts";
import { perFile } from "../support/per-file.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { callRows, resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { runsIn } from "../support/in-container.ts";

const reason = noOwnDocker();

describe.skipIf(reason !== undefined)(
  `a Docker engine${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    const engine = perFile(() => startOwnDocker(inject("sandboxImage")));
    const database = useDatabase();

    it.each([
      ["restarted", "end"],
      ["killed and started again", "kill"],
    ] as const)(
      "that is %s during a tool costs that command; files stay and the worker continues",
      { tags: ["R15"] },
      async (_name, how) => {
        const script = scriptedModel()
          .calls("bash", { command: "echo line >> n.txt; sleep 60; echo done" })
          .calls("bash", { command: "cat n.txt" })
          .says("Done.");
        const session = await startKillableSession(database, script, {
          dockerHost: engine.host,
          config: { sandbox: { network: "none" } },
        });
        const worker = await session.startWorker();
        await eventually("the command runs", () => runsIn(session.sandbox, "sleep 60"), 60_000);
        await engine.stop(how);
        await engine.start();
        const back = Date.now();
        expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 3 });
        expect(Date.now() - back).toBeLessThan(60_000);
        expect(worker.alive, worker.log()).toBe(true);
        expect((await callRows(database.store, session.id)).map((row) => row.status)).toEqual([
          "unknown",
          "completed",
        ]);
        const [notice, counted] = await resultTexts(database.store, session.id);
        expect(notice).toContain("It was not run again");
        expect(counted).toBe("line");
        expect(session.model.log).toHaveLength(3);
        await checkSession(session.services, session);
      },
    );

    it("that stalls is told to whoever watches, and the command is found again when it answers", async () => {
      const script = scriptedModel()
        .calls("bash", { command: "echo line >> n.txt; sleep 100; cat n.txt", timeout_seconds: 300 })
        .says("Done.");
      const session = await startKillableSession(database, script, {
        dockerHost: engine.host,
        config: { sandbox: { network: "none" } },
      });
      await session.startWorker();
      await eventually("the command runs", () => runsIn(session.sandbox, "sleep 100"), 60_000);
      engine.freeze();
      onTestFinished(() => engine.thaw());
      const { client } = session.services;
      const trouble = async () => {
        const run = await describedRun(client, session.id);
        return run && (await troubleOf(client, session.id, run));
      };
      const told = await eventually("the trouble is told", trouble, 180_000);
      expect(told).toContain("the Docker engine does not answer");
      engine.thaw();
      expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 2 });
      expect(await resultTexts(database.store, session.id)).toEqual([
        expect.stringMatching(/^line\n\[took \d+/),
      ]);
      await checkSession(session.services, session);
    });
  },
);
