/** The offline checker can fail: for each claim on waits, commands in the background, verifications and money, evidence that breaks it. */
import { describe, expect, it } from "vitest";
import { checkEvidence } from "../../support/checker/check.ts";
import { testBreaks, type Break, type Breaks } from "../../support/checker/breaking.ts";
import type { Evidence, WaitRow } from "../../support/checker/evidence.ts";
import { messageRow, soundEvidence } from "../../support/checker/sound-evidence.ts";

const AT = new Date("2026-11-21T10:00:20Z");
const WAIT: WaitRow = {
  sessionId: "sound",
  epoch: 1,
  step: 2,
  callIndex: 0,
  kind: "time",
  until: AT,
  target: { call: "c" },
  reason: "the deploy",
  startedAt: AT,
  endedAt: AT,
  how: "time",
  supersededEpoch: null,
  supersededBy: null,
};
const STARTED = ["wait:started", { for: "time", until: null, reason: "the deploy", targets: [] }] as const;
const ENDED = ["wait:ended", { how: "time", ms: 5 }] as const;
const PROCESS_ENDED = [
  "process:ended",
  { id: "s1c0", about: "", how: "ended with exit code 0", exitCode: 0, ms: 1, lines: "" },
] as const;
const VERIFIED = [
  "verify:ended",
  { round: 0, command: "npm test", outcome: "passed", how: "exit code 0", ms: 1, tail: "" },
] as const;

type Told = readonly [type: string, data: object];

/** Evidence with these events at its end, all of step 2. */
const withEvents =
  (...told: readonly Told[]): Break =>
  ({ events, cursor }) => ({
    cursor: { ...cursor, eventSeq: cursor.eventSeq + told.length },
    events: [
      ...events,
      ...told.map(([type, data], index) => ({
        ...(events[0] as Evidence["events"][number]),
        seq: cursor.eventSeq + index + 1,
        step: 2,
        type,
        data,
      })),
    ],
  });

const waited =
  (change: Partial<WaitRow>, ...told: readonly Told[]): Break =>
  (sound) => ({ ...withEvents(...told)(sound), waits: [{ ...WAIT, ...change }] });

const ENDED_NOTE =
  '[Commands in the background:\ns1c0 (npm test) ended with exit code 0 after 2 s. Last lines:\nok\n(bash_output id="s1c0" has all)]';
const noted =
  (...texts: readonly string[]): Break =>
  ({ messages, cursor }) => ({
    cursor: { ...cursor, messageSequence: cursor.messageSequence + texts.length },
    messages: [
      ...messages,
      ...texts.map((text, index) =>
        messageRow({ sequence: 9 + index, step: 3, kind: "notice", content: [{ type: "text", text }] }),
      ),
    ],
  });

const BREAKS: Breaks = {
  I13: [
    ["a wait that never ended", waited({ endedAt: null, how: null }, STARTED), "since the run is closed"],
    ["an end without a reason", waited({ how: null }, STARTED), "an end with its reason"],
    ["a wait that nobody heard of", waited({}, ENDED), "one wait:started"],
    ["a wait that began twice", waited({}, STARTED, STARTED, ENDED), "one wait:started"],
    ["a wait whose end was not said", waited({}, STARTED), "one wait:ended: time"],
    ["a wait that ended twice", waited({}, STARTED, ENDED, ENDED), "time,time"],
    ["a wait that ended otherwise", waited({ how: "message" }, STARTED, ENDED), "one wait:ended: message"],
    ["a command that ended twice", withEvents(PROCESS_ENDED, PROCESS_ENDED), "one process:ended"],
    ["an end that was told twice", noted(ENDED_NOTE, ENDED_NOTE), "2 times"],
    ["a verification without a row", withEvents(VERIFIED), "0 verify:ended"],
    ["money that is still reserved", () => ({ reserved: 1 }), "no reserved money"],
    ["a call that was counted twice", () => ({ spent: { calls: 4, costUsd: 0 } }), "3 calls for 0 USD"],
    ["a cost that no bill has", () => ({ spent: { calls: 3, costUsd: 0.5 } }), "3 calls for 0.5 USD"],
  ],
};

describe("the offline checker", () => testBreaks(BREAKS));

describe("the offline checker accepts", () => {
  it.each<[string, Break]>([
    ["a wait with one beginning and one end", waited({}, STARTED, ENDED)],
    ["a wait that a cancelled run closed", waited({ how: "cancelled" }, STARTED)],
    ["a call of wait that was answered by a warning", waited({ how: "warned" })],
    ["an end that was told once", noted(ENDED_NOTE)],
  ])("%s", (_what, change) => {
    const sound = soundEvidence();
    const found = checkEvidence({ ...sound, ...change(sound) });
    expect(found.filter(({ claim }) => claim === "I13")).toEqual([]);
  });
});
