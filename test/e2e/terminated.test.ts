/** Terminate, from the Web UI: no code of ours runs. The reaper cleans up, and no message is lost. */
import { pino } from "pino";
import { expect, it } from "vitest";
import { findSession } from "../../activities/store/sessions.ts";
import { receiveGuidance, waitingGuidance } from "../../activities/store/guidance.ts";
import { listedAsRunning } from "../../temporal/runs.ts";
import { createReaper } from "../../worker/reaper.ts";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { createRowHolds } from "../support/crash/row-holds.ts";
import { eventually } from "../support/eventually.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import {
  isSummaryRequest,
  longSession,
  says,
  wordsAsked,
  timesAsked,
  noisySteps,
} from "../support/scripted-summaries.ts";
import { untilItRuns } from "../support/lost-sandbox.ts";
import { resultTexts } from "../support/stored.ts";
import { untilCalls } from "../support/waits.ts";
import { isThere } from "../support/in-container.ts";
import { say } from "../support/client-services.ts";
import { playConnections } from "../support/play-loop.ts";
import { perFile } from "../support/per-file.ts";

const agent = useAgent();
const holds = perFile(() => createRowHolds(agent.database));

const store = () => agent.database.store;
const hasBox = ({ id }: RunningSession) => isThere(agent.docker.getContainer(`longhaul-${id}`));

/** A reaper's round, as every worker runs at its start and every ten minutes, once Temporal lists the run as over. */
async function reap({ id }: RunningSession): Promise<void> {
  const isListed = async () => (await listedAsRunning(agent.client)).has(id);
  await eventually("Temporal lists it as ended", async () => !(await isListed()));
  const { native: connection } = await playConnections();
  const reaper = createReaper({
    host: agent.deps.sandboxHost,
    store: store(),
    countedSaves: agent.deps.countedSaves,
    connection,
    namespace: "default",
    taskQueue: agent.taskQueue,
    logger: pino({ level: "silent" }),
    everyMs: 3_600_000,
  });
  await reaper.start();
  await reaper.stop();
}

const HEARD = "I have heard it all.";

async function park({ id }: RunningSession): Promise<void> {
  const parts = [{ type: "text" as const, text: "use tabs" }];
  await receiveGuidance(store().db, id, [{ id: "parked", parts, queuedAt: new Date().toISOString() }]);
}

/** The terminated run is cleaned up, and the run that resumes the session gets the waiting messages, once and in order. */
async function expectCleanedAndTakenUp(session: RunningSession, status = "cancelled"): Promise<void> {
  expect(await hasBox(session)).toBe(false);
  expect(await findSession(store().db, session.id)).toMatchObject({ status });
  expect((await waitingGuidance(store().db, session.id, 10)).map(({ id }) => id)).toEqual(["parked"]);
  await say(agent, session.id, { id: "resume", text: "go on" });
  expect(await agent.client.workflow.getHandle(session.id).result()).toMatchObject({
    status: "completed",
    result: HEARD,
  });
  const words = wordsAsked(session.model);
  expect(words.split("use tabs")).toHaveLength(2);
  expect(words.indexOf("use tabs")).toBeLessThan(words.indexOf("go on"));
  // The request in flight when the run was terminated is in no bill.
  await checkSession(agent, session, { kills: 1 });
}

it.each([
  ["while the model speaks", (session: RunningSession) => session.until("llm:chunk")],
  ["while a command runs", ({ id }: RunningSession) => untilCalls(store(), id, "running")],
] as const)(
  "a run that is terminated %s leaves no sandbox, an ended session, and all that waited",
  { tags: ["R58"] },
  async (phase, reached) => {
    const script = scriptedModel();
    if (phase.includes("command")) script.calls("bash", { command: "sleep 600" });
    else script.calls("bash", { command: "true" }).answers(text("I begin"), { type: "hang" });
    const session = await agent.start(script.says(HEARD));
    await reached(session);
    await park(session);
    await session.handle.terminate("by hand");
    expect(await hasBox(session)).toBe(true);
    await reap(session);
    await expectCleanedAndTakenUp(session);
  },
);

it("a session continues with its newest files once its terminated run's sandbox was reaped", async () => {
  const session = await agent.start(
    scriptedModel()
      .calls("bash", { command: "echo newest > n.txt; sleep 600" })
      .calls("bash", { command: "cat n.txt" })
      .says(HEARD),
  );
  await untilItRuns(agent, session, "sleep 600");
  await park(session);
  await session.handle.terminate("by hand");
  await reap(session);
  await expectCleanedAndTakenUp(session);
  expect((await resultTexts(store(), session.id)).at(-1)).toBe("newest");
});

it(
  "a run terminated during a summary leaves no sandbox, an ended session, and all messages",
  { tags: ["R58"] },
  async () => {
    const noisy = noisySteps(1, 4, 80);
    const script = longSession({
      steps: [...noisy, { parts: [call("bash", { command: "sleep 2" })] }, says(HEARD)],
      summary: () => ({ beforeHeaders: "hang" }),
    });
    const session = await agent.start(script, { config: { context: { options: { keepMessages: 2 } } } });
    await session.until("llm:tool-call", (event) => event.data.about.includes("sleep 2"));
    await session.handle.signal("compact", {});
    await eventually(
      "the summary is asked for",
      () => session.model.requests.some((request) => isSummaryRequest(request)),
      60_000,
    );
    await park(session);
    await session.handle.terminate("by hand");
    await reap(session);
    await expectCleanedAndTakenUp(session);
  },
);

it.each([
  ["before its sandbox's removal is stored", { type: "sandbox:removed" }, "lost", "cancelled"],
  ["after its end is stored, before anybody hears of it", { type: "session:ended" }, "kept", "completed"],
] as const)(
  "a run terminated while it closes, %s, leaves no sandbox, an ended session, all messages",
  { tags: ["R58"] },
  async (_when, match, fate, status) => {
    const session = await agent.start(
      scriptedModel().calls("bash", { command: "sleep 2" }).says("Done.").says(HEARD),
    );
    const hold = await holds.hold(session.id, { table: "events", match });
    await eventually("the run closes", () => hold.reached(), 60_000);
    await park(session);
    await session.handle.terminate("by hand");
    await hold.release(fate);
    await eventually("the attempt is over", async () => !(await hold.reached()), 60_000);
    await reap(session);
    await expectCleanedAndTakenUp(session, status);
  },
);

it(
  "messages of a terminated run's last step are delivered again by the run that resumes",
  { tags: ["R58", "invariant-6"] },
  async () => {
    const script = scriptedModel().answers(text("I begin"), { type: "hang" }).says("I have heard it all.");
    const session = await agent.start(script, {
      input: {
        guidance: [
          { id: "first", parts: [{ type: "text", text: "use tabs" }], queuedAt: "2026-11-21T00:00:00Z" },
        ],
      },
    });
    await session.until("llm:chunk");
    await session.handle.terminate("by hand");
    await reap(session);
    await say(agent, session.id, { id: "resume", text: "go on" });
    await agent.client.workflow.getHandle(session.id).result();
    expect(timesAsked(session.model, ["use tabs"])).toEqual([1]);
  },
);
