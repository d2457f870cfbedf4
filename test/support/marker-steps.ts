/** A session that appends a line to a file at every step, to count what ran twice or never. */
import { expect } from "vitest";
import type { Store } from "../../activities/store/db.ts";
import { call, scriptedModel, text, type ModelScript } from "./scripted-model.ts";
import { callRows, resultTexts, transcriptOf } from "./stored.ts";

/**
 * `steps` steps of a slow command, then one that reads what they wrote, then a text. Each answer
 * depends on its request alone, so that a repeated step is the same step.
 */
export function markerSteps(steps: number, seconds = 0.3): ModelScript {
  return scriptedModel().forever(({ items }) => {
    const step = 1 + items.filter((item) => item.type === "call" && item.name === "bash").length;
    if (step > steps + 1) return { parts: [text("All lines are there.")] };
    if (step > steps) return { parts: [call("bash", { command: "cat n.txt" })] };
    const command = `echo ${step} >> n.txt; sleep ${seconds}; echo end ${step}`;
    return {
      parts: [
        text(`Step ${step} writes its line.`),
        call("bash", { command }),
        call("list_directory", { path: "." }),
      ],
      chunkChars: 8,
      chunkDelayMs: 30,
    };
  });
}

/** Every command ran once and in order, every call has one result, no sequence is missing or used twice. */
export async function expectMarkerSteps(store: Store, sessionId: string, steps: number): Promise<void> {
  const lines = Array.from({ length: steps }, (_value, index) => String(index + 1));
  const results = await resultTexts(store, sessionId);
  expect(results.at(-1)?.split("\n").slice(0, steps)).toEqual(lines);
  expect(
    results.filter((result) => result.startsWith("end ")).map((result) => result.split("\n")[0]),
  ).toEqual(lines.map((line) => `end ${line}`));
  const rows = await transcriptOf(store, sessionId);
  // The first is the prompt.
  expect(rows.map((row) => row.sequence)).toEqual(rows.map((_row, index) => index + 2));
  expect(rows.filter((row) => row.slot === "assistant")).toHaveLength(steps + 2);
  const calls = await callRows(store, sessionId);
  expect(calls.map((row) => row.status)).toEqual(calls.map(() => "completed"));
  expect(calls).toHaveLength(2 * steps + 1);
}
