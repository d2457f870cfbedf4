/** A week in the life of one session, in seconds: a question, two deploys, a database restart, a reset, and everything done once. */
import { expect, it, onTestFinished } from "vitest";
import { bySession } from "../support/by-session.ts";
import { checkFamily, delegationsOf, delegating } from "../support/delegating.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { startOwnPostgres } from "../support/own-postgres.ts";
import { questionRows, untilWaiting } from "../support/questions.ts";
import { resetToStep } from "../support/reset-run.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const bash = (command: string) => [call("bash", { command })];

/** By the root's progress, so that a repeated step is the same step. */
const ROOT = [
  bash("echo monday >> week.marks"),
  [call("ask_user", { question: "npm or pnpm?", options: ["npm", "pnpm"] })],
  [call("delegate", { task: "Read what is there." })],
  bash("echo thursday >> week.marks"),
  [call("delegate", { task: "Write the report.", access: "write" })],
  bash("cat week.marks report.txt"),
  [text("The week is over.")],
];

it("a session over deploys, a restart, delegates and a reset has done everything once", async () => {
  const postgres = await startOwnPostgres();
  onTestFinished(() => postgres.close());
  const delegates = bySession({
    ".s3c0": [bash("cat week.marks"), [text("It says monday.")]],
    ".s5c0e2": [
      [call("write_file", { path: "report.txt", content: "pnpm it is\n" })],
      [text("The report is written.")],
    ],
  });
  let isHeld = false;
  const script = scriptedModel().forever((request) => {
    if (request.cacheKey !== session.id) return delegates(request);
    const done = request.items.filter(({ type }) => type === "call").length;
    // The position of the reset.
    if (done === 4 && !isHeld) {
      isHeld = true;
      return { beforeHeaders: "hang" };
    }
    const parts = ROOT[done];
    if (parts === undefined) throw new Error(`Nothing follows ${done} calls.`);
    return { parts };
  });
  const session = await startKillableSession(postgres, script, {
    config: { ...delegating(), questions: { mode: "ask", parkAfter: 200, maxOpen: 8 } },
  });
  const { id, handle, services: place } = session;

  const first = await session.startWorker({ LONGHAUL_BUILD_ID: "monday" });
  await untilWaiting(postgres.store, session);
  await session.until("sandbox:parked");
  expect(await first.terminate()).toBe(0);
  await postgres.stop();
  await postgres.start();
  const second = await session.startWorker({ LONGHAUL_BUILD_ID: "tuesday" });
  expect(await handle.query("status")).toMatchObject({ status: "waiting", questions: [{ id: "s2c0" }] });
  expect(await second.terminate()).toBe(0);
  // No worker is there to run it.
  await handle.signal("answer", { option: 2, by: "ann" });
  await session.startWorker({ LONGHAUL_BUILD_ID: "wednesday" });
  await eventually("it has done four steps", () => isHeld, 60_000);
  await resetToStep(place.client, id, 4);

  expect(await place.client.workflow.getHandle(id).result()).toMatchObject({
    status: "completed",
    steps: 7,
    result: "The week is over.",
  });
  expect(await questionRows(postgres.store, session)).toMatchObject([
    { id: "s2c0", status: "answered", answer: "pnpm", answeredBy: "ann" },
  ]);
  expect((await delegationsOf(postgres.store, id)).map(({ childId, status }) => [childId, status])).toEqual([
    [`${id}.s3c0`, "applied"],
    [`${id}.s5c0e2`, "applied"],
  ]);
  const results = await resultTexts(postgres.store, id);
  expect(results.at(-1)).toBe("monday\nthursday\npnpm it is");
  expect(results[1]).toBe("The person answered: pnpm");
  await checkFamily(place, session);
});
