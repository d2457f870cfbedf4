/** kill -9 of the worker at each named point: the result equals an undisturbed run's. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { runCrashMatrix, type CrashedSession, type CrashMatrix } from "../support/crash/matrix.ts";
import type { CrashPoint } from "../support/crash/point.ts";
import { CRASH_POINTS } from "../support/crash/points.ts";
import { CRASH_SCRIPTS, type ScriptName } from "../support/crash/scripts.ts";
import { wordsOfTranscript } from "../support/crash/words.ts";

/** Mostly the wait for a missing heartbeat. */
const MATRIX_MS = 900_000;

let matrix: CrashMatrix;
beforeAll(async () => {
  matrix = await runCrashMatrix(CRASH_POINTS);
  compareAll();
}, MATRIX_MS);
afterAll(() => matrix.close());

interface Comparison {
  readonly words: readonly object[];
  /** Lines of commands that ran in parallel may be in any order. */
  readonly marks: readonly (readonly [file: string, lines: readonly string[]])[];
  readonly calls: readonly string[];
  readonly requests: number;
  readonly repeats: number;
}

async function compared(session: CrashedSession, script: ScriptName, kills = 0): Promise<Comparison> {
  expect(await session.result()).toMatchObject({ status: "completed" });
  const { marks, calls } = await checkSession(matrix.services, session, { kills });
  return {
    words: await wordsOfTranscript(matrix.services, session.id, CRASH_SCRIPTS[script]),
    marks: [...(marks ?? [])].map(([file, lines]) => [file, lines.toSorted()]),
    calls: calls.map((call) => call.status),
    requests: session.model.log.length,
    repeats: await repeatsOf(session),
  };
}

const ASKING = ["modelStep", "summarize"];

/** Attempts that ask the model after a first one, whose request may have arrived: a busy machine may lose one more heartbeat. */
async function repeatsOf({ id }: CrashedSession): Promise<number> {
  const { events } = await matrix.services.client.workflow.getHandle(id).fetchHistory();
  const asking = new Set(
    (events ?? [])
      .filter(({ activityTaskScheduledEventAttributes: task }) =>
        ASKING.includes(task?.activityType?.name ?? ""),
      )
      .map(({ eventId }) => String(eventId)),
  );
  return (events ?? []).reduce((sum, { activityTaskStartedEventAttributes: started }) => {
    const isAsking = asking.has(String(started?.scheduledEventId));
    return isAsking ? sum + (started?.attempt ?? 1) - 1 : sum;
  }, 0);
}

/** A request for a summary that was lost with its worker is in no bill. */
function unlisted({ hold }: CrashPoint): number {
  return hold.at === "model" && hold.purpose === "summary" ? 1 : 0;
}

/** Of sessions that have ended, while others still wait for their lost heartbeats. */
const crashed = new Map<string, Promise<Comparison>>();
const calm = new Map<ScriptName, Promise<Comparison>>();

function compareAll(): void {
  for (const [script, session] of matrix.undisturbed) calm.set(script, compared(session, script));
  for (const point of CRASH_POINTS) {
    const session = matrix.crashed.get(point.name);
    if (session) crashed.set(point.name, compared(session, point.script, unlisted(point)));
  }
  // Each test says its own.
  for (const comparison of [...calm.values(), ...crashed.values()]) comparison.catch(() => undefined);
}

describe("a session whose worker is killed has the result of an undisturbed one", () => {
  for (const point of CRASH_POINTS)
    it(point.name, { tags: point.tags, timeout: MATRIX_MS }, async () => {
      const [session, twin] = [crashed.get(point.name), calm.get(point.script)];
      if (!session || !twin) throw new Error(`${point.name} was not run.`);
      const { requests, repeats: ofTwin, ...expected } = await twin;
      const { requests: asked, repeats, ...found } = await session;
      expect(found).toEqual(expected);
      expect(asked).toBeGreaterThanOrEqual(requests - ofTwin);
      const repeated = point.extraCalls === 0 ? 0 : Math.max(point.extraCalls, repeats);
      expect(asked, `${repeats} attempts were repeated`).toBeLessThanOrEqual(requests + repeated);
    });
});
