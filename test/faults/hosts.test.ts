/** Two Docker hosts, each with a worker and its own queue; the first one, this file's own engine, dies permanently. */
import Dockerode from "dockerode";
import { describe, expect, inject, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { startKillableSession, type KillableSession } from "../support/killable-session.ts";
import { noOwnDocker, startOwnDocker } from "../support/own-docker.ts";
import { perFile } from "../support/per-file.ts";
import { call, scriptedModel, type ModelScript } from "../support/scripted-model.ts";
import { callRows, resultTexts, noticesOf } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { untilStepSaved } from "../support/waits.ts";
import { touch, runsIn } from "../support/in-container.ts";

const reason = noOwnDocker();
const BUSY_MS = 120_000;
const bash = (command: string) => call("bash", { command });

describe.skipIf(reason !== undefined)(
  `of two Docker hosts${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    const second = new Dockerode();
    const first = perFile(() => startOwnDocker(inject("sandboxImage")));
    const database = useDatabase();

    async function start(script: ModelScript, maxHistoryEvents?: number): Promise<KillableSession> {
      const session = await startKillableSession(database, script, {
        config: {
          sandbox: { network: "none" },
          limits: maxHistoryEvents === undefined ? {} : { maxHistoryEvents },
        },
        environment: { LONGHAUL_HOST_TIMEOUT_SECONDS: "5" },
      });
      return session;
    }
    const host = (session: KillableSession, name: "first" | "second") =>
      session.startWorker({
        LONGHAUL_HOST: name,
        LONGHAUL_SANDBOX_QUEUE: `${session.id}-${name}`,
        ...(name === "first" ? { DOCKER_HOST: first.host } : {}),
      });
    const running = (docker: Dockerode, { id }: KillableSession, text: string) =>
      eventually(`"${text}" runs`, () => runsIn(docker.getContainer(`longhaul-${id}`), text), BUSY_MS);
    const resourcesOn = async (docker: Dockerode, { id }: KillableSession) =>
      (await docker.listContainers({ all: true, filters: { label: [`longhaul.session=${id}`] } })).length +
      ((await docker.listVolumes({ filters: { label: [`longhaul.session=${id}`] } })).Volumes ?? []).length;

    it("one keeps the sandbox, also in a new history", async () => {
      const script = scriptedModel();
      for (let step = 1; step <= 8; step += 1) script.answers(bash(`echo ${step} >> n.txt`));
      const session = await start(script.answers(bash("cat n.txt")).says("Done."), 50);
      await host(session, "first");
      await host(session, "second");
      expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 10 });
      expect((await resultTexts(database.store, session.id)).at(-1)).toBe("1\n2\n3\n4\n5\n6\n7\n8");
      expect(await session.dataOf("sandbox:created")).toHaveLength(1);
      const description = await session.handle.describe();
      expect(description.raw.workflowExecutionInfo?.firstRunId).not.toBe(description.runId);
    });

    it(
      "one dies during a command: its outcome is unknown, the other has the files, nothing stays",
      { tags: ["A22", "A21"] },
      async () => {
        const session = await start(
          scriptedModel()
            .calls("write_file", { path: "kept.txt", content: "kept\n" })
            .answers(bash("echo line >> n.txt; sleep 4711"))
            .answers(bash("cat kept.txt; ls; while [ ! -e go ]; do sleep 0.2; done"))
            .says("Done."),
        );
        const worker = await host(session, "first");
        await running(first.docker, session, "sleep 4711");
        await untilStepSaved(database.store, session.id, 1);
        await worker.kill();
        await first.stop("kill");
        await host(session, "second");
        await running(second, session, "[ ! -e go ]");

        expect(await session.dataOf("sandbox:lost")).toHaveLength(1);
        const [notice, ...more] = await noticesOf(database.store, session.id);
        expect(more).toEqual([]);
        expect(notice).toContain("its Docker host first does not answer");
        expect(notice).toContain("as saved after step 1.");

        // The first host comes back while the session continues on the other.
        await first.start();
        expect(await resourcesOn(first.docker, session)).toBe(2);
        await host(session, "first");
        await eventually(
          "its sandbox is reaped",
          async () => (await resourcesOn(first.docker, session)) === 0,
          BUSY_MS,
        );
        expect(await resourcesOn(second, session)).toBe(2);
        await touch(second.getContainer(`longhaul-${session.id}`), "/workspace/go");
        expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 4 });
        const [, slept, looked] = await resultTexts(database.store, session.id);
        expect(slept).toMatch(/not known how this command ended[^]*It was not run again/);
        expect(looked).toMatch(/^kept\nkept.txt\b/);
        const calls = await callRows(database.store, session.id);
        expect(calls.map((row) => row.status)).toEqual(["completed", "unknown", "completed"]);
      },
    );

    it(
      "one dies between two calls: the next call has not begun, and runs on the other",
      { tags: ["A22"] },
      async () => {
        const session = await start(
          scriptedModel()
            .calls("write_file", { path: "kept.txt", content: "kept\n" })
            .answers({ type: "hang" })
            .answers(bash("echo ran >> ran.txt; cat kept.txt ran.txt"), bash("cat kept.txt"))
            .says("Done."),
        );
        const worker = await host(session, "first");
        await untilStepSaved(database.store, session.id, 1);
        await eventually("the model is asked", () => session.model.log.length === 2, BUSY_MS);
        await worker.kill();
        await first.stop("kill");
        await host(session, "second");
        expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 3 });
        const [, ran, kept] = await resultTexts(database.store, session.id);
        expect(ran).toBe("kept\nran");
        expect(kept).toBe("kept");
        const calls = await callRows(database.store, session.id);
        expect(calls.map((row) => [row.status, row.fence])).toEqual([
          ["completed", 1],
          ["completed", 1],
          ["completed", 1],
        ]);
        expect(await noticesOf(database.store, session.id)).toHaveLength(1);
        await first.start();
      },
    );
  },
);
