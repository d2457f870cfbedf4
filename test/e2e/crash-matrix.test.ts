/** kill -9 of the worker at each named point: the result equals an undisturbed run's. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import {
  runCrashMatrix,
  wordsOfTranscript,
  type CrashedSession,
  type CrashMatrix,
} from "../support/crash/matrix.ts";
import { CRASH_POINTS, type CrashPoint } from "../support/crash/points.ts";
import type { ScriptName } from "../support/crash/scripts.ts";

/** Mostly the wait for a missing heartbeat. */
const MATRIX_MS = 900_000;

let matrix: CrashMatrix;
beforeAll(async () => {
  matrix = await runCrashMatrix(CRASH_POINTS);
}, MATRIX_MS);
afterAll(() => matrix.close());

interface Comparison {
  readonly words: readonly object[];
  /** Lines of commands that ran in parallel may be in any order. */
  readonly marks: readonly (readonly [file: string, lines: readonly string[]])[];
  readonly calls: readonly string[];
  readonly requests: number;
}

async function compared(session: CrashedSession, kills = 0): Promise<Comparison> {
  expect(await session.result()).toMatchObject({ status: "completed" });
  const { marks, calls } = await checkSession(matrix.services, session, { kills });
  return {
    words: await wordsOfTranscript(matrix.services, session.id),
    marks: [...(marks ?? [])].map(([file, lines]) => [file, lines.toSorted()]),
    calls: calls.map((call) => call.status),
    requests: session.model.log.length,
  };
}

/** A request for a summary that was lost with its worker is in no bill. */
function unlisted({ hold }: CrashPoint): number {
  return hold.at === "model" && hold.purpose === "summary" ? 1 : 0;
}

const calm = new Map<ScriptName, Promise<Comparison>>();

describe("a session whose worker is killed has the result of an undisturbed one", () => {
  for (const point of CRASH_POINTS)
    it(point.name, { tags: point.tags, timeout: MATRIX_MS }, async () => {
      const session = matrix.crashed.get(point.name);
      const twin = matrix.undisturbed.get(point.script);
      if (!session || !twin) throw new Error(`${point.name} was not run.`);
      if (!calm.has(point.script)) calm.set(point.script, compared(twin));
      const { requests, ...expected } = (await calm.get(point.script)) as Comparison;
      const { requests: asked, ...found } = await compared(session, unlisted(point));
      expect(found).toEqual(expected);
      expect(asked).toBeGreaterThanOrEqual(requests);
      expect(asked).toBeLessThanOrEqual(requests + point.extraCalls);
    });
});
