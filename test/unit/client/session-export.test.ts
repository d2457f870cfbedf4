import { expect, it } from "vitest";
import type { Streams } from "../../../activities/text/streams.ts";
import { exportDocument } from "../../../client/sessions/session-export.ts";
import { trajectoryDocument } from "../../../client/sessions/transcript.ts";
import { callRow } from "../../support/checker/sound-evidence.ts";
import { sessionRow, wholeSession } from "../../support/stored-whole.ts";

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

it("a result without the places of its streams is exported as not kept apart", () => {
  const whole = withCall(null);
  expect(exportDocument(sessionRow, whole).toolCalls).toMatchObject([
    { result: TEXT, stdout: null, stderr: null, exitCode: 3 },
  ]);
  const [, step] = trajectoryDocument(sessionRow, whole, "1.2.3").steps;
  expect(step?.observation?.results[0]?.extra).toEqual({ outcome: "completed", exitCode: 3 });
});
