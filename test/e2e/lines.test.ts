/** Resets of runs that are not the newest, and during what is in flight: each goes on with the line of the run that was reset. */
import { afterAll, expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { type RunningSession, startAgent } from "../support/agent-harness.ts";
import { createFakeHost } from "../support/fake-host.ts";
import { type HistoryEvent, lastTask, resetTo, resetToStep } from "../support/reset-run.ts";
import { retry, sessionRow } from "../support/client-services.ts";
import { perFile } from "../support/per-file.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { wordsOf } from "../support/scripted-summaries.ts";
import { callRows, transcriptOf } from "../support/stored.ts";
import { runIdsOf } from "../../activities/store/runs.ts";
import { stepOf } from "../support/crash/scripts.ts";
import { eventually } from "../support/eventually.ts";

let opening = Promise.withResolvers<void>();
opening.resolve();
const host = createFakeHost(() => opening.promise);
const agent = perFile(() => startAgent({ sandboxHost: host }));
afterAll(() => host.dispose());

const client = () => agent.client;
const runIdOf = async ({ id }: RunningSession) => (await client().workflow.getHandle(id).describe()).runId;

/** Answers each step with a command that prints the step and the line, until the last step. */
const counting = (line: () => number, last: () => number) =>
  scriptedModel().forever((request) => {
    const step = stepOf(request);
    const said = text(`Step ${step}. Line ${line()}.`);
    if (step === last()) return { parts: [said] };
    const command = `echo step ${step} line ${line()}; echo ${step} >> line-${line()}.txt`;
    return { parts: [said, call("bash", { command }, { callId: `call-${step}` })] };
  });

/** Entries of the newest request, without notices. */
const viewOf = (session: RunningSession, at = -1) =>
  session.model.requests
    .at(at)
    ?.items.filter((item) => !JSON.stringify(item).includes("The conversation went back"));

it("a reset of an abandoned run goes on with that run's line, byte for byte, also twice", async () => {
  let line = 1;
  const session = await agent.start(
    counting(
      () => line,
      () => 5,
    ),
  );
  await session.result();
  const first = await runIdOf(session);
  const lines = new Map([[first, viewOf(session)]]);
  const reset = async (runId: string, step: number) => {
    line += 1;
    const made = await resetToStep(client(), session.id, step, runId);
    const asked = session.model.requests.length;
    const result = await client().workflow.getHandle(session.id, made).result();
    expect(result).toMatchObject({ status: "completed", result: `Step 5. Line ${line}.` });
    lines.set(made, viewOf(session));
    return { made, view: viewOf(session, asked) };
  };
  const second = await reset(first, 2);
  for (const [runId, step] of [
    [first, 4],
    [second.made, 4],
    [first, 5],
    [second.made, 2],
    [first, 3],
  ] as const) {
    const { view } = await reset(runId, step);
    expect(view).toEqual(lines.get(runId)?.slice(0, view?.length));
    const words = wordsOf(session.model.requests.at(-1) ?? { items: [] });
    expect([...words.matchAll(/"step (\d) line \d"/g)].map(([, at]) => at)).toEqual(["1", "2", "3", "4"]);
  }
  const live = (await transcriptOf(agent.database.store, session.id)).filter(
    (row) => row.supersededEpoch === null,
  );
  expect(live.filter((row) => row.slot === "assistant").map((row) => row.step)).toEqual([1, 2, 3, 4, 5]);
  await checkSession(agent, session);
});

it.each([
  ["that completed", { limits: {} }],
  ["that continued as new", { limits: { maxHistoryEvents: 50 } }],
])(
  "a reset of an older run %s to after its last activity brings that run's line back",
  async (_kind, config) => {
    let line = 1;
    const session = await agent.start(
      counting(
        () => line,
        () => 8,
      ),
      { config },
    );
    await session.result();
    const [first = ""] = (await runIdsOf(agent.database.store.db, session.id)).slice(-1);
    line = 2;
    const second = await resetToStep(client(), session.id, 2, first);
    expect(await client().workflow.getHandle(session.id, second).result()).toMatchObject({
      result: "Step 8. Line 2.",
    });
    line = 3;
    const third = await resetTo(client(), session.id, lastTask, { runId: first });
    const { result } = await client().workflow.getHandle(session.id, third).result();
    const row = await sessionRow(agent, session.id);
    expect(row).toMatchObject({ status: "completed", result });
    const live = (await transcriptOf(agent.database.store, session.id)).filter(
      (of) => of.supersededEpoch === null && of.slot === "assistant",
    );
    const lines = live.map(({ content }) => /Line (\d)/.exec(JSON.stringify(content))?.[1]);
    expect(lines).toHaveLength(8);
    // A run that continued as new had some of the steps; the rest is done again.
    expect(lines.join("")).toMatch(Object.keys(config.limits).length === 0 ? /^1{8}$/ : /^1{2,7}3+$/);
    expect(result).toBe(`Step 8. Line ${lines.at(-1)}.`);
    await checkSession(agent, session);
  },
);

it("a retry of a step that only an abandoned line has is refused, and changes nothing", async () => {
  let last = 5;
  let line = 1;
  const session = await agent.start(
    counting(
      () => line,
      () => last,
    ),
  );
  await session.result();
  [last, line] = [3, 2];
  const made = await resetToStep(client(), session.id, 2);
  await client().workflow.getHandle(session.id, made).result();
  const before = await transcriptOf(agent.database.store, session.id);
  await expect(retry(agent, session.id, 4)).rejects.toThrow("has steps 1 to 3, but no step 4");
  expect(await transcriptOf(agent.database.store, session.id)).toEqual(before);
  await checkSession(agent, session);
});

const answeredAt = (events: readonly HistoryEvent[]) => {
  const asked = events.find(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === "modelStep",
  );
  return events.find(
    (event) =>
      String(event.activityTaskCompletedEventAttributes?.scheduledEventId) === String(asked?.eventId),
  );
};

it("a reset while the sandbox opens keeps the answer that came, and pays for nothing twice", async () => {
  opening = Promise.withResolvers<void>();
  const session = await agent.start(
    counting(
      () => 1,
      () => 2,
    ),
  );
  const { handle } = session;
  const events = await eventually("the answer is known while the sandbox is being opened", async () => {
    const found = (await handle.fetchHistory()).events ?? [];
    const answered = answeredAt(found);
    const task = found.findLast((event) => event.workflowTaskCompletedEventAttributes);
    return answered && task && Number(task.eventId) > Number(answered.eventId) ? found : undefined;
  });
  const made = await resetTo(
    client(),
    session.id,
    () => events.findLast((event) => event.workflowTaskCompletedEventAttributes)?.eventId,
  );
  opening.resolve();
  const result = await client().workflow.getHandle(session.id, made).result();
  expect(result).toMatchObject({ status: "completed", result: "Step 2. Line 1." });
  const rows = await transcriptOf(agent.database.store, session.id);
  expect(rows.filter((row) => row.slot === "assistant" && row.supersededEpoch !== null)).toEqual([]);
  expect(session.model.requests).toHaveLength(2);
  expect((await callRows(agent.database.store, session.id)).map((row) => row.status)).toEqual(["completed"]);
  await checkSession(agent, session);
});
