/** Ways to break sound evidence in one place, for the checker's own tests. */
import { expect, it } from "vitest";
import { checkEvidence } from "./check.ts";
import type { Evidence, MessageRow } from "./evidence.ts";
import { soundEvidence } from "./sound-evidence.ts";
import { describeViolations } from "./violation.ts";

export type Break = (sound: Evidence) => Partial<Evidence>;

export const rows =
  (change: (row: MessageRow) => MessageRow | MessageRow[]): Break =>
  ({ messages }) => ({ messages: messages.flatMap(change) });
export const row = (sequence: number, change: Partial<MessageRow>): Break =>
  rows((message) => (message.sequence === sequence ? { ...message, ...change } : message));
export const without = (sequence: number): Break =>
  rows((message) => (message.sequence === sequence ? [] : message));
export const history =
  (change: Partial<Evidence["histories"][number]>): Break =>
  ({ histories }) => ({ histories: histories.map((run) => ({ ...run, ...change })) });
export const bills =
  (change: (bill: Evidence["bills"][number]) => Evidence["bills"][number][]): Break =>
  ({ bills: list }) => ({ bills: list.flatMap(change) });
export const round =
  (change: Partial<Evidence["rounds"][number]>): Break =>
  ({ rounds }) => ({ rounds: rounds.map((compaction) => ({ ...compaction, ...change })) });
export const resultText = (outcome: string, toolCallId = "a") => [
  { type: "tool-result", toolCallId, toolName: "bash", outcome, text: "ok" },
];
export const parked = (id: string, deliveredSequence: number | null) => ({
  sessionId: "sound",
  id,
  ordinal: 1,
  parts: [],
  queuedAt: "",
  deliveredSequence,
  dropped: false,
  received: true,
  dueAt: new Date(0),
  author: null,
});
export const container = { kind: "container", name: "longhaul-sound" } as const;

/** What is broken, how, and text of the expected violation. */
export type Breaks = Readonly<Record<string, readonly [string, Break, string][]>>;

/** One test for each: the checker reports a violation of the claim. */
export function testBreaks(breaks: Breaks): void {
  const cases = Object.entries(breaks).flatMap(([claim, list]) =>
    list.map(([what, change, expected]) => [claim, what, change, expected] as const),
  );
  it.each(cases)("finds by %s %s", (claim, _what, change, expected) => {
    const sound = soundEvidence();
    const found = checkEvidence({ ...sound, ...change(sound) });
    expect(found.map((violation) => violation.claim)).toContain(claim);
    expect(describeViolations(found.filter((violation) => violation.claim === claim))).toContain(expected);
  });
}
