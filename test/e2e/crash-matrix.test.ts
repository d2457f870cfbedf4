/** kill -9 of the worker at each named point: what comes out is what an undisturbed run comes to. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { runCrashMatrix, wordsOfTranscript, type CrashMatrix } from "../support/crash/matrix.ts";
import { CRASH_POINTS } from "../support/crash/points.ts";

/** Most of it is the wait for a heartbeat that stays away. */
const MATRIX_MS = 600_000;

let matrix: CrashMatrix;
beforeAll(async () => {
  matrix = await runCrashMatrix(CRASH_POINTS);
}, MATRIX_MS);
afterAll(() => matrix.close());

const NAMED = CRASH_POINTS.map((point) => [`${point.name} ${point.cases}`, point] as const);

describe("a session whose worker is killed", () => {
  it.each(NAMED)("%s comes to what it would have come to", async (_name, point) => {
    const session = matrix.crashed.get(point.name);
    const twin = matrix.undisturbed.get(point.script);
    if (!session || !twin) throw new Error(`${point.name} was not run.`);
    const [result] = await Promise.all([session.result, twin.result]);
    expect(result).toMatchObject({ status: "completed" });

    const evidence = await checkSession(matrix.place, session, { kills: point.extraCalls });
    const calm = await checkSession(matrix.place, twin);
    expect(await wordsOfTranscript(matrix.place, session.id)).toEqual(
      await wordsOfTranscript(matrix.place, twin.id),
    );
    expect(session.model.log.length).toBe(twin.model.log.length + point.extraCalls);
    // Each command ran once; lines of commands that ran side by side may stand in any order.
    const lines = (marks: typeof evidence.marks) =>
      [...(marks ?? [])].map(([file, list]) => [file, list.toSorted()]);
    expect(lines(evidence.marks)).toEqual(lines(calm.marks));
    expect(evidence.calls.map((call) => call.status)).toEqual(calm.calls.map((call) => call.status));
  });
});
