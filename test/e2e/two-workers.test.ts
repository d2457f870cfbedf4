/** Two workers on one queue: one dies during its work, the other continues it at once. */
import { expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession, startWithTwo } from "../support/killable-session.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { answersOf, callRows, resultTexts, secondAttempt } from "../support/stored.ts";
import { busyWith } from "../support/worker-process.ts";
import { useDatabase } from "../support/test-database.ts";
import { untilCalls, untilTaken } from "../support/waits.ts";
import { touch } from "../support/in-container.ts";

const database = useDatabase(20);

it(
  "a killed worker loses its step to another at once, without a heartbeat timeout",
  { tags: ["R21"] },
  async () => {
    const script = scriptedModel()
      .answers(text("This half was never finished"), { type: "hang" })
      .calls("bash", { command: "echo one >> n.txt; until [ -e go ]; do sleep 0.2; done" })
      .calls("bash", { command: "cat n.txt" })
      .says("Done.");
    const { session, workers } = await startWithTwo(database, script);
    await session.until("llm:chunk");
    const first = await busyWith(session, workers, "modelStep");
    await first.kill();
    await eventually("the step is asked for again", () => session.model.log.length === 2, 60_000);
    await untilCalls(database.store, session.id, "running");
    // The benchmark checks the speed; the history shows that no heartbeat timed out.
    const again = await secondAttempt(session.handle);
    expect(again?.lastFailure?.applicationFailureInfo?.type).toBe("WorkerLost");
    // A command, too: the next worker follows the running one.
    await session.startWorker();
    await (await busyWith(session, workers, "runTool")).kill();
    await untilTaken(database.store, session.id, 2);
    await touch(session.sandbox, "/workspace/go");
    expect(await session.handle.result()).toMatchObject({ status: "completed" });
    expect((await resultTexts(database.store, session.id)).at(-1)).toBe("one");
    expect(await answersOf(database.store, session.id)).toHaveLength(3);
    await checkSession(session.services, session, { kills: 2 });
  },
);

it(
  "several sessions on two workers, one of which is killed: each has its steps once, in order",
  { tags: ["R21"] },
  async () => {
    const STEPS = 4;
    const script = scriptedModel().forever((request) => {
      const words = request.items.map((item) => JSON.stringify(item));
      const name = /session-\d/.exec(words.join(" "))?.[0] ?? "";
      const step =
        words.filter((item) => item.includes("call_output") || item.includes('"result"')).length + 1;
      return step > STEPS
        ? { parts: [text(`${name} is done.`)] }
        : { parts: [call("bash", { command: `echo ${name}.${step} >> n.txt; cat n.txt` })] };
    });
    const leading = await startKillableSession(database, script, { task: "You are session-0." });
    const others = await Promise.all(
      [1, 2, 3].map((place) =>
        startKillableSession(database, script, { task: `You are session-${place}.`, beside: leading }),
      ),
    );
    const [first] = [await leading.startWorker(), await leading.startWorker()];
    const sessions = [leading, ...others];
    await eventually(
      "calls have begun",
      async () =>
        (await Promise.all(sessions.map(({ id }) => callRows(database.store, id)))).flat().length >= 4,
      120_000,
    );
    await first.kill();
    await Promise.all(sessions.map(({ handle }) => handle.result()));
    for (const [place, { id, services: at }] of sessions.entries()) {
      const expected = Array.from({ length: STEPS }, (_, step) => `session-${place}.${step + 1}`).join("\n");
      expect((await resultTexts(database.store, id)).at(-1)).toBe(expected);
      expect(await answersOf(database.store, id)).toHaveLength(STEPS + 1);
      await checkSession(at, id);
    }
  },
);
