/** What a day of waiting costs, with all intervals divided by one factor: actions that the server keeps, slots, containers, requests. */
import { expect, it } from "vitest";
import { useAgent, type RunningSession } from "../support/agent-harness.ts";
import { call, scriptedModel, type ModelScript } from "../support/scripted-model.ts";

const agent = useAgent();

/** A day is 20 seconds, and the ten minutes before parking are a tenth of one. */
const FACTOR = 4_320;
const DAY_SECONDS = 86_400 / FACTOR;
const config = { questions: { mode: "ask", maxOpen: 5, parkAfter: Math.round(600_000 / FACTOR) } } as const;
/** Source: the goal for a day of waiting. */
const MOST_ACTIONS = 12;

/** Each request of the workflow, and each attempt of an activity, is one: timers, signals, updates and search attributes too. */
async function actionsSince({ handle }: RunningSession, firstEvent: number): Promise<number> {
  const { events = [] } = await handle.fetchHistory();
  return (events ?? [])
    .filter(({ eventId }) => Number(eventId) > firstEvent)
    .reduce((sum, event) => {
      const isOne =
        event.timerStartedEventAttributes ??
        event.workflowExecutionSignaledEventAttributes ??
        event.workflowExecutionUpdateAcceptedEventAttributes ??
        event.upsertWorkflowSearchAttributesEventAttributes;
      return sum + (isOne ? 1 : 0) + (event.activityTaskStartedEventAttributes?.attempt ?? 0);
    }, 0);
}

const lengthOf = async ({ handle }: RunningSession): Promise<number> =>
  Number((await handle.describe()).historyLength);

const containersOf = ({ id }: RunningSession) =>
  agent.docker.listContainers({ filters: { label: [`longhaul.session=${id}`], status: ["running"] } });

/** @returns the actions from the beginning of the wait to the next step, both included */
async function waitingDay(
  script: ModelScript,
  begins: (session: RunningSession) => Promise<unknown>,
  ends: (session: RunningSession) => Promise<unknown>,
): Promise<number> {
  const session = await agent.start(script, { config });
  await session.until("llm:tool-result");
  const first = await lengthOf(session);
  await begins(session);
  await session.until("sandbox:parked");
  const { requests } = session.model;
  const asked = requests.length;
  const seen = { slots: 0, containers: 0 };
  const began = performance.now();
  while (performance.now() - began < (DAY_SECONDS * 1_000) / 4) {
    const pending = (await session.handle.describe()).raw.pendingActivities ?? [];
    // 2 is `started`: an attempt that a worker works at.
    seen.slots += pending.filter(({ state }) => state === 2).length;
    seen.containers += (await containersOf(session)).length;
  }
  expect(seen).toEqual({ slots: 0, containers: 0 });
  expect(requests.length).toBe(asked);
  await ends(session);
  await session.result();
  const { events = [] } = await session.handle.fetchHistory();
  const last = (events ?? []).findLast(
    ({ activityTaskScheduledEventAttributes: task }) => task?.activityType?.name === "modelStep",
  );
  const after = (events ?? []).filter(({ eventId }) => Number(eventId) > Number(last?.eventId));
  const ofTheEnd = after.reduce(
    (sum, event) =>
      sum +
      (event.activityTaskStartedEventAttributes?.attempt ?? 0) +
      (event.timerStartedEventAttributes ? 1 : 0) +
      (event.upsertWorkflowSearchAttributesEventAttributes ? 1 : 0),
    0,
  );
  return (await actionsSince(session, first)) - ofTheEnd;
}

const worked = () => scriptedModel().answers(call("bash", { command: "echo work > done" }));

it("a timed wait of a day takes at most 12 actions, no slot and no container", async () => {
  const actions = await waitingDay(
    worked()
      .answers(call("wait", { reason: "a day", seconds: DAY_SECONDS }))
      .says("Done."),
    (session) => session.until("wait:started"),
    (session) => session.until("wait:ended"),
  );
  console.log(`a timed wait of a day: ${actions} actions`);
  expect(actions).toBeLessThanOrEqual(MOST_ACTIONS);
});

it("a question that is open for a day takes at most 12 actions, no slot and no container", async () => {
  const actions = await waitingDay(
    worked()
      .answers(call("ask_user", { question: "Which licence?" }))
      .says("Done."),
    (session) => session.until("question:asked"),
    (session) => session.handle.signal("answer", "MIT"),
  );
  console.log(`a question of a day: ${actions} actions`);
  expect(actions).toBeLessThanOrEqual(MOST_ACTIONS);
});

it("a model's limit of a day takes at most 12 actions, no slot and no container", async () => {
  const actions = await waitingDay(
    worked().limits(DAY_SECONDS).says("Done."),
    async () => undefined,
    async () => undefined,
  );
  console.log(`a model's limit of a day: ${actions} actions`);
  expect(actions).toBeLessThanOrEqual(MOST_ACTIONS);
});
