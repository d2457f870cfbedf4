/** The offline checker can fail: for each claim on the transcript, evidence that breaks it. */
import { describe } from "vitest";
import {
  history,
  parked,
  resultText,
  row,
  rows,
  testBreaks,
  type Breaks,
  without,
} from "../../support/checker/breaking.ts";
import { messageRow, servedEntry } from "../../support/checker/sound-evidence.ts";

const BREAKS: Breaks = {
  I1: [
    ["an unused sequence", ({ cursor }) => ({ cursor: { ...cursor, messageSequence: 9 } }), "a hole"],
    ["one sequence twice", rows((row) => (row.sequence === 8 ? [row, { ...row, step: 4 }] : row)), "2 rows"],
    ["two answers of one step", row(8, { step: 2 }), "one live row of step 2, assistant"],
    ["a step back", row(8, { step: 1, slot: "extra" }), "step 1"],
    ["a step that is missing", row(8, { step: 5 }), "an answer of step 3"],
    ["a sequence beyond the counter", ({ cursor }) => ({ cursor: { ...cursor, messageSequence: 7 } }), "8"],
    ["a row out of its place", row(6, { position: 3 }), "a position that is its sequence"],
    ["a row of an epoch to come", row(8, { epoch: 2 }), "an epoch up to 1"],
  ],
  I2: [
    ["a call without a result", without(4), "results of [a]"],
    [
      "results in another order",
      rows((row) => (row.sequence === 3 ? { ...row, content: resultText("completed", "b") } : row)),
      "results of [b, b]",
    ],
    ["another result than the ledger's", row(3, { content: resultText("error") }), "says completed"],
    [
      "a call that is still open after the end",
      ({ calls }) => ({ calls: calls.map((call) => ({ ...call, status: "running" })) }),
      "no result while it is open",
    ],
    ["a call without a ledger row", ({ calls }) => ({ calls: calls.slice(1) }), "a ledger row of call 0 (a)"],
    [
      "an orphan result",
      rows((row) =>
        row.sequence === 8
          ? {
              ...messageRow({ sequence: 8, step: 3, slot: "tool:0", role: "tool" }),
              content: resultText("completed", "z"),
            }
          : row,
      ),
      "a ledger row that set its sequence aside",
    ],
    [
      "a request that was refused",
      ({ served = [] }) => ({
        served: [...served, { receivedAt: 0, status: 400, refused: "No tool output found for call a." }],
      }),
      "No tool output found",
    ],
    ["an answer in front of the task", row(1, { role: "assistant" }), "the task first"],
  ],
  I3: [
    ["a command run twice", () => ({ marks: new Map([["run.marks", ["m1-0", "m1-0", "m1-1"]]]) }), "2 lines"],
    ["a line of no call", () => ({ marks: new Map([["run.marks", ["m1-0", "m1-1", "m9-9"]]]) }), "at most 0"],
    ["a command that never ran", () => ({ marks: new Map([["run.marks", ["m1-0"]]]) }), "no line"],
  ],
  I4: [
    ["a message that was lost", history({ accepted: ["three"] }), "neither"],
    ["a message that came twice", row(5, { meta: { ids: ["one", "two", "one"] } }), "2 deliveries"],
    ["messages in another order", row(5, { meta: { ids: ["two", "one"] } }), "delivered after it"],
    ["a delivered message that still waits", () => ({ parked: [parked("one", null)] }), "waiting"],
    ["a parked message that no row carries", () => ({ parked: [parked("four", 6)] }), "does not carry it"],
  ],
  I5: [
    [
      "a prompt that forgot its beginning",
      ({ served = [] }) => ({
        served: [...served.slice(0, 1), servedEntry(12, 200, 20, "another", "answer 1"), ...served.slice(2)],
      }),
      "another entry 1",
    ],
    [
      "another system prompt",
      ({ served = [] }) => ({
        served: served.map((entry, index) =>
          index === 1 && entry.request
            ? { ...entry, request: { ...entry.request, system: "You are a poet." } }
            : entry,
        ),
      }),
      "another one",
    ],
  ],
};

describe("the offline checker", () => testBreaks(BREAKS));
