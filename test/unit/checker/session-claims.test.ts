/** The offline checker can fail: for each claim on bills, rounds, ends, texts and events, evidence that breaks it. */
import { describe, expect, it } from "vitest";
import { checkEvidence } from "../../support/checker/check.ts";
import { describeViolations } from "../../support/checker/violation.ts";
import {
  bills,
  container,
  history,
  parked,
  resultText,
  round,
  row,
  rows,
  testBreaks,
  type Break,
  type Breaks,
  without,
} from "../../support/checker/breaking.ts";
import type { Evidence } from "../../support/checker/evidence.ts";
import { messageRow, servedEntry, soundEvidence } from "../../support/checker/sound-evidence.ts";

const events =
  (change: (event: Evidence["events"][number]) => object[]): Break =>
  ({ events: all }) => ({ events: all.flatMap(change) as Evidence["events"] });
const withoutEvent = (seq: number) => events((event) => (event.seq === seq ? [] : [event]));
const watched =
  (change: (events: Evidence["events"]) => readonly object[]): Break =>
  ({ events: all }) => ({ watched: change(all).map((event) => ({ ...event, at: "" })) as never });
const session =
  (change: Partial<Evidence["session"]>): Break =>
  ({ session: given }) => ({ session: { ...given, ...change } });
const said = (text: string) => row(5, { content: [{ type: "text", text }] });

const BREAKS: Breaks = {
  I6: [
    ["an answer without a bill", bills((bill) => (bill.step === 2 ? [] : [bill])), "one kept bill"],
    [
      "a step paid twice",
      bills((bill) => (bill.step === 2 ? [bill, { ...bill, id: 9 }] : [bill])),
      "one kept bill",
    ],
    [
      "another bill than the model's",
      bills((bill) => [{ ...bill, cachedTokens: 50 }]),
      "of the model with this bill",
    ],
    ["an answer with another bill", row(6, { meta: { usage: { input: 1, output: 1 } } }), "1 in, 1 out"],
    [
      "a request that is not listed",
      ({ served = [] }) => ({ served: [...served, servedEntry(29, 300, 31, "task", "summary", "guidance")] }),
      "answers of the model that were not kept",
    ],
    [
      "a total that is not the sum",
      events((event) =>
        event.type === "session:ended"
          ? [{ ...event, data: { usage: { input: 1, output: 1, calls: 3 } } }]
          : [event],
      ),
      "1 in, 1 out",
    ],
  ],
  I7: [
    ["a round without a summary", without(7), "one summary"],
    ["a summary without a round", () => ({ rounds: [] }), "a finished round that made it"],
    ["a round that made it larger", round({ tokensAfter: 500 }), "fewer than 500"],
    ["a hole in the numbers", round({ round: 2 }), "rounds 1"],
    ["rows of no round", row(5, { isCompacted: true, compactedRound: 7 }), "its round is not in force"],
    [
      "a row that two rounds replaced",
      rows((row) => (row.sequence === 3 ? [row, row] : [row])),
      "one round that replaced it",
    ],
    ["another summary than the round's", round({ summaryContent: "something else" }), "another text"],
    [
      "a round that replaced nothing",
      rows((row) => ({ ...row, isCompacted: false, compactedRound: null })),
      "messages that it replaced",
    ],
  ],
  I8: [
    ["a session that is active after its run", session({ status: "active" }), "completed or max_steps"],
    ["an end without time", session({ endedAt: null }), "the time of its end"],
    ["a session that ended while its run continues", history({ status: "RUNNING" }), "active or waiting"],
    ["a sandbox that outlives its run", () => ({ sandboxes: [container] }), "still there"],
    ["a session that no run belongs to", () => ({ histories: [] }), "a run in Temporal"],
  ],
  I9: [["a volume that stays", () => ({ sandboxes: [{ ...container, kind: "volume" }] }), "still there"]],
  I10: [
    ["a secret in the transcript", said("it is sk-canary!"), "one of the canaries"],
    ["a secret in base64", said(Buffer.from("sk-canary").toString("base64")), "one of the canaries"],
    ["a secret in the history", history({ text: "sk-canary" }), "one of the canaries"],
    ["half a character", said("\ud83d"), "a lone surrogate"],
    ["a NUL", session({ result: "a\0b" }), "a NUL"],
    ["a payload that is too large", history({ largestPayload: 70_000 }), "70000"],
    [
      "a secret that was sent",
      ({ served = [] }) => ({
        served: served.map((entry) =>
          entry.request ? { ...entry, request: { ...entry.request, raw: { input: "sk-canary" } } } : entry,
        ),
      }),
      "one of the canaries",
    ],
  ],
  I11: [
    [
      "a field that the events' schema does not know",
      events((event) =>
        event.seq === 2 ? [{ ...event, data: { ...(event.data as object), secretField: 1 } }] : [event],
      ),
      "llm:tool-result by its schema",
    ],
    ["an answer that watchers did not hear of", withoutEvent(5), "one llm:response"],
    [
      "a result with two events",
      events((event) => (event.seq === 2 ? [event, { ...event, seq: 0 }] : [event])),
      "one llm:tool-result",
    ],
    [
      "a piece of an answer that is stored",
      () => ({
        chunks: [
          {
            sessionId: "sound",
            seq: 0,
            epoch: 1,
            step: 2,
            attempt: 1,
            chunkType: "text",
            text: "late",
            at: new Date(),
          },
        ],
      }),
      "which is stored",
    ],
    ["a watcher that missed something", watched((all) => all.slice(1)), "not seen"],
    [
      "a watcher that saw something twice",
      watched((all) => [...all.slice(0, 1), ...all]),
      "seen out of order, or twice",
    ],
    [
      "an event that was changed",
      watched((all) => all.map((event) => ({ ...event, data: { other: true } }))),
      "as it is stored",
    ],
    [
      "two events in one place",
      ({ events, cursor }) => ({
        events: [...events, { ...events[0], seq: 7, type: "other" } as never],
        cursor,
      }),
      "one row",
    ],
    ["an event beyond the counter", ({ cursor }) => ({ cursor: { ...cursor, eventSeq: 6 } }), "seqs up to 6"],
    ["a message that was read without a word", withoutEvent(4), "one message:dequeued"],
  ],
  I12: [["a history that does not replay", history({ replayFailure: "nondeterminism" }), "nondeterminism"]],
};

describe("the offline checker", () => testBreaks(BREAKS));

it("reports nothing for sound evidence", () => {
  expect(describeViolations(checkEvidence(soundEvidence()))).toBe("");
});

describe("the offline checker accepts", () => {
  const passes = (what: string, change: Break) =>
    it(what, () => {
      const sound = soundEvidence();
      expect(describeViolations(checkEvidence({ ...sound, ...change(sound) }))).toBe("");
    });

  passes("a request that was lost with its worker", ({ served = [] }) => ({
    kills: 1,
    served: [...served, servedEntry(29, 300, 31, "task", "summary", "guidance")],
  }));
  passes("a call whose outcome is unknown and that left no line", ({ calls, messages }) => ({
    calls: calls.map((call) => (call.callId === "a" ? { ...call, status: "unknown" } : call)),
    messages: messages.map((message) =>
      message.sequence === 3 ? { ...message, content: resultText("unknown") } : message,
    ),
    marks: new Map([["run.marks", ["m1-1"]]]),
  }));
  passes("a call that was repeated after a reset, with the same id", ({ calls, events }) => ({
    calls: calls.flatMap((call) =>
      call.callId === "a"
        ? [
            { ...call, sequence: 0, supersededEpoch: 2 },
            { ...call, sequence: -1, epoch: 2, supersededEpoch: 3 },
            { ...call, epoch: 3 },
          ]
        : [call],
    ),
    events: events.flatMap((event) =>
      event.seq === 2 ? [event, { ...event, seq: -1, epoch: 2 }, { ...event, seq: 0, epoch: 3 }] : [event],
    ),
  }));
  passes("a fork, whose past has its bills, events and missing sequences with the other", (sound) => ({
    messages: [
      ...sound.messages.filter(({ sequence }) => sequence !== 5),
      messageRow({
        sequence: 9,
        step: 4,
        slot: "reset",
        kind: "notice",
        content: [
          { type: "text", text: "[This conversation continues from an earlier point of session other. …]" },
        ],
      }),
    ],
    cursor: { ...sound.cursor, messageSequence: 9 },
    bills: [],
    served: [],
    events: [],
    histories: sound.histories.map((history) => ({ ...history, accepted: [] })),
  }));
  passes("a message that is kept as undelivered", ({ histories }) => ({
    histories: histories.map((history) => ({
      ...history,
      accepted: [...history.accepted, "late"],
    })),
    parked: [parked("late", null)],
  }));
  passes("an overflow that the provider reported", ({ served = [], bills: list }) => ({
    served: [
      ...served,
      { receivedAt: 0, status: 400, refused: "Your input exceeds the context window of this model." },
    ],
    bills: list,
  }));
  passes("a line that was lost with sandbox and volume", ({ events, cursor }) => ({
    marks: new Map([["run.marks", ["m1-0"]]]),
    cursor: { ...cursor, eventSeq: 8 },
    events: [
      ...events,
      {
        ...events[0],
        seq: 8,
        type: "sandbox:created",
        data: { container: "c", workspace: "restored" },
        at: new Date(Date.parse("2026-11-21T11:00:00Z")),
      } as never,
    ],
  }));
});
