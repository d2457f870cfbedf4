/** Sandboxes that are stopped and kept, whose engine is restarted or dies for good; this file has its own engine for that. */
import Dockerode from "dockerode";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { emptyFolder } from "../support/empty-folder.ts";
import { ALL_THERE, installsAndLooks, KEEPING } from "../support/installing.ts";
import { type KillableSession, startKillableSession } from "../support/killable-session.ts";
import { noOwnDocker, startOwnDocker } from "../support/own-docker.ts";
import { perFile } from "../support/per-file.ts";
import { makeRemote, onRepository } from "../support/remotes.ts";
import { removeBox } from "../support/remove-box.ts";
import { startRunFor } from "../support/start-run.ts";
import { noticesOf, resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const reason = noOwnDocker();

describe.skipIf(reason !== undefined)(
  `a stopped sandbox${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    const engine = perFile(() => startOwnDocker(inject("sandboxImage")));
    const database = useDatabase();

    async function goOn({ id, services }: KillableSession): Promise<string | undefined> {
      const next = await startRunFor(services.client, id, id, { id: "look", text: "Look." });
      expect(await next.result()).toMatchObject({ result: "Two." });
      return (await resultTexts(database.store, id)).at(-1);
    }

    it("has what was installed after a restart of its engine", async () => {
      const session = await startKillableSession(database, installsAndLooks(), {
        dockerHost: engine.host,
        config: KEEPING,
      });
      const worker = await session.startWorker();
      expect(await session.handle.result()).toMatchObject({ result: "One." });
      await engine.stop("end");
      await engine.start();
      expect((await session.sandbox.inspect()).State.Status).toBe("exited");
      expect(await goOn(session)).toMatch(ALL_THERE);
      expect(await session.dataOf("sandbox:adopted")).toContainEqual(
        expect.objectContaining({ parked: true }),
      );
      expect(worker.alive, worker.log()).toBe(true);
    });

    it("of a lost host is made again on another from save and base, and it is told", async () => {
      const place = makeRemote({ "b.txt": "b\n" }, { end: onTestFinished });
      const session = await startKillableSession(database, installsAndLooks(), {
        config: { ...KEEPING, ...onRepository(place.url, { push: "never" }) },
        environment: {
          LONGHAUL_HOST_TIMEOUT_SECONDS: "5",
          LONGHAUL_GIT_FOLDER: emptyFolder(onTestFinished),
        },
      });
      const host = (name: string, environment: Readonly<Record<string, string>> = {}) =>
        session.startWorker({
          LONGHAUL_HOST: name,
          LONGHAUL_SANDBOX_QUEUE: `${session.id}-${name}`,
          ...environment,
        });
      const worker = await host("first", { DOCKER_HOST: engine.host });
      expect(await session.handle.result()).toMatchObject({ result: "One." });
      expect(await session.dataOf("sandbox:parked")).toHaveLength(1);
      await worker.kill();
      await engine.stop("kill");
      await host("second");
      expect(await goOn(session)).toMatch(/^kept\ncat: [^]*left-pad[^]*tool/);
      const [notice] = await noticesOf(database.store, session.id);
      expect(notice).toMatch(/files are those of the last save.*node_modules.*npm install left-pad/);
      const layers = (await session.dataOf("sandbox:created")).map((created) => created.layers);
      expect(layers.at(-1)).toBe("overlay");
      await removeBox(new Dockerode(), session.id);
      await engine.start();
    });
  },
);
