/** An operator's actions on a pending activity in Temporal's Web UI: pause, unpause, reset. None of them is a cancel. */
import { expect, it } from "vitest";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { eventually } from "../support/eventually.ts";
import { scriptedModel, text } from "../support/scripted-model.ts";
import { answersOf, resultTexts } from "../support/stored.ts";
import { untilCalls } from "../support/waits.ts";

const agent = useAgent();

/** Temporal's numbers of a pending activity's state. */
const PAUSED = 4;
const AWAY = { headers: { "retry-after": "600" } };

const pendingOf = async ({ handle }: RunningSession, type: string) =>
  (await handle.describe()).raw.pendingActivities?.find(({ activityType }) => activityType?.name === type);

/** As the Web UI's buttons do it. */
async function press(
  button: "pauseActivity" | "unpauseActivity" | "resetActivity",
  session: RunningSession,
  type = "modelStep",
) {
  const id = (await pendingOf(session, type))?.activityId ?? "";
  const { workflowService, options } = agent.client;
  const request = {
    namespace: options.namespace,
    execution: { workflowId: session.id },
    identity: "a person",
    id,
  };
  if (button === "pauseActivity") await workflowService.pauseActivity(request);
  else if (button === "unpauseActivity") await workflowService.unpauseActivity(request);
  else await workflowService.resetActivity(request);
}

async function untilPaused(session: RunningSession, type = "modelStep"): Promise<void> {
  await eventually("it is paused", async () => (await pendingOf(session, type))?.state === PAUSED, 60_000);
}

it(
  "a model step paused between two attempts waits for the unpause, and has one answer",
  { tags: ["A13"] },
  async () => {
    const session = await agent.start(scriptedModel().fails(503, "Down.", AWAY).says("Here I am."));
    await session.until("llm:error");
    await press("pauseActivity", session);
    await untilPaused(session);
    await press("unpauseActivity", session);
    expect(await session.result()).toMatchObject({ status: "completed", result: "Here I am." });
    expect(await answersOf(agent.database.store, session.id)).toHaveLength(1);
  },
);

it(
  "one paused during an answer is aborted, not cancelled, and requested again",
  { tags: ["A13"] },
  async () => {
    const script = scriptedModel()
      .answers(text("This half is dropped"), { type: "hang" })
      .says("The whole answer.");
    const session = await agent.start(script);
    await session.until("llm:chunk");
    await press("pauseActivity", session);
    await untilPaused(session);
    await eventually("the provider is hung up on", () => session.model.aborts.length === 1);
    expect((await session.handle.describe()).status.name).toBe("RUNNING");
    expect(session.model.log).toHaveLength(1);
    await press("unpauseActivity", session);
    expect(await session.result()).toMatchObject({ status: "completed", result: "The whole answer." });
    const answers = await answersOf(agent.database.store, session.id);
    expect(answers).toHaveLength(1);
    expect(JSON.stringify(answers)).not.toContain("interrupted");
  },
);

it("one reset between two attempts is retried at once, and counted from one", { tags: ["A13"] }, async () => {
  const session = await agent.start(
    scriptedModel()
      .fails(503, "Down.", { ...AWAY, times: 1 })
      .says("Here I am."),
  );
  await session.until("llm:error");
  await press("resetActivity", session);
  expect(await session.result()).toMatchObject({ status: "completed", result: "Here I am." });
  const { events } = await session.handle.fetchHistory();
  const scheduled = (events ?? []).find(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === "modelStep",
  )?.eventId;
  const started = (events ?? [])
    .map((event) => event.activityTaskStartedEventAttributes)
    .find((attributes) => String(attributes?.scheduledEventId) === String(scheduled));
  expect(started?.attempt).toBe(1);
  expect(await answersOf(agent.database.store, session.id)).toHaveLength(1);
});

it(
  "a paused command continues, and its end is found after the unpause: it ran once",
  { tags: ["A13"] },
  async () => {
    const script = scriptedModel()
      .calls("bash", { command: "echo line >> n.txt; sleep 4; echo done" })
      .calls("bash", { command: "cat n.txt" })
      .says("Done.");
    const session = await agent.start(script);
    await untilCalls(agent.database.store, session.id, "running");
    await press("pauseActivity", session, "runTool");
    await untilPaused(session, "runTool");
    await press("unpauseActivity", session, "runTool");
    expect(await session.result()).toMatchObject({ status: "completed" });
    const [slept, counted] = await resultTexts(agent.database.store, session.id);
    expect(slept).toMatch(/^done\b/);
    expect(counted).toBe("line");
  },
);
