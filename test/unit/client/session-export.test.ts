import { expect, it } from "vitest";
import type { Streams } from "../../../activities/text/streams.ts";
import { exportDocument } from "../../../client/sessions/session-export.ts";
import { trajectoryDocument } from "../../../client/sessions/transcript.ts";
import { callRow } from "../../support/checker/sound-evidence.ts";
import { AT, sessionRow, wholeSession } from "../../support/stored-whole.ts";

const TEXT = "</pre><script>";

/** The stored session, its first call's result with these streams. */
function withCall(streams: Streams | null) {
  return { ...wholeSession, toolCalls: [{ ...callRow(3, 1, 0, "c1"), exitCode: 3, streams }] };
}

it("an export has both streams of a command, and where they are in its result", () => {
  const whole = withCall({ stdout: [[0, 6]], stderr: [[6, TEXT.length]] });
  expect(exportDocument(sessionRow, whole).toolCalls).toMatchObject([
    { result: TEXT, stdout: "</pre>", stderr: "<script>", exitCode: 3, streams: { stdout: [[0, 6]] } },
  ]);
  const [, step] = trajectoryDocument(sessionRow, whole, "1.2.3").steps;
  expect(step?.observation?.results).toMatchObject([
    { content: TEXT, extra: { outcome: "completed", exitCode: 3, streams: { stderr: [[6, 14]] } } },
  ]);
});

it("an export has waits and checks, without the session in each row", () => {
  const place = { sessionId: sessionRow.id, epoch: 1, step: 2 };
  const wait = { ...place, callIndex: 0, kind: "time", until: AT, target: null, reason: "the deploy" };
  const ended = { startedAt: AT, endedAt: AT, how: "time", supersededEpoch: null, supersededBy: null };
  const check = {
    ...place,
    round: 0,
    command: 0,
    outcome: "failed",
    exitCode: 1,
    ms: 5,
    tree: "t",
    text: "npm test",
  };
  const more = { signature: "s", output: "no", handle: "s2c0v0-1", commit: null, protectedPaths: ["test/a"] };
  const figures = { result: null, changedLines: null, at: AT };
  const whole = {
    ...wholeSession,
    waits: [{ ...wait, ...ended }],
    verifications: [{ ...check, ...more, ...figures }],
  };
  const document = exportDocument(sessionRow, whole);
  expect(document.waits).toMatchObject([{ step: 2, kind: "time", reason: "the deploy", how: "time" }]);
  expect(document.verifications).toMatchObject([
    { outcome: "failed", handle: "s2c0v0-1", protectedPaths: ["test/a"] },
  ]);
  expect(JSON.stringify([document.waits, document.verifications])).not.toContain(sessionRow.id);
});

it("a result without the places of its streams is exported as not kept apart", () => {
  const whole = withCall(null);
  expect(exportDocument(sessionRow, whole).toolCalls).toMatchObject([
    { result: TEXT, stdout: null, stderr: null, exitCode: 3 },
  ]);
  const [, step] = trajectoryDocument(sessionRow, whole, "1.2.3").steps;
  expect(step?.observation?.results[0]?.extra).toEqual({ outcome: "completed", exitCode: 3 });
});
