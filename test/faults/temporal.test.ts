/** The Temporal server goes away during a run: this file has its own. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { startClient } from "../support/program.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { startOwnTemporal } from "../support/own-temporal.ts";
import { perFile } from "../support/per-file.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { untilCalls } from "../support/waits.ts";

/** Downtime: past the end of the command, so that its result finds no server. */
const AWAY_MS = 15_000;

const temporal = perFile(() => startOwnTemporal());
const database = useDatabase();

it(
  "a Temporal server away during a tool costs neither its result, the run nor the worker",
  { tags: ["R18", "A27"] },
  async () => {
    const script = scriptedModel()
      .calls("bash", { command: "echo line >> n.txt; sleep 6; echo done" })
      .calls("bash", { command: "cat n.txt" })
      .says("Here again.");
    const session = await startKillableSession(database, script, { temporalAddress: temporal.address });
    const worker = await session.startWorker();
    const client = { DATABASE_URL: database.url, TEMPORAL_ADDRESS: temporal.address };
    const watch = startClient(["watch", session.id], client);
    onTestFinished(() => watch.kill("SIGKILL"));
    await untilCalls(database.store, session.id, "running");
    await temporal.stop();
    const left = Date.now();
    const say = startClient(["say", session.id, "are you there?"], client);
    expect((await say.ended).code).toBe(4);
    expect(say.err()).toContain("Temporal");
    // The command ends meanwhile, and its result is stored without the server.
    await untilCalls(database.store, session.id, "completed");
    await sleep(Math.max(0, AWAY_MS - (Date.now() - left)));
    await temporal.start();
    expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 3 });
    expect(worker.alive, worker.log()).toBe(true);
    const [slept, counted] = await resultTexts(database.store, session.id);
    expect(slept).toMatch(/^done\b/);
    expect(counted).toBe("line");
    expect(session.model.log).toHaveLength(3);
    expect((await watch.ended).code).toBe(0);
    expect(watch.out()).toBe("Here again.\n");
    await checkSession(session.services, session);
  },
);
