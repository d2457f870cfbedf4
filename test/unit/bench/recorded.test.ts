import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { readRecorded, trajectoryOf } from "../../bench/policies/recorded.ts";

const FIXTURE = fileURLToPath(new URL("../../fixtures/trajectory.json.gz", import.meta.url));

test("the recorded session has 300 steps, results for all calls, and facts of every kind", () => {
  const { steps, facts } = readRecorded(FIXTURE);
  expect(steps).toHaveLength(300);
  expect(steps.flatMap(({ calls }) => calls).filter(({ output }) => output === "")).toEqual([]);
  expect(new Set(facts.map(({ kind }) => kind))).toEqual(new Set(["rule", "decision", "path", "finding"]));
  const messages = steps.filter(({ user }) => user !== undefined);
  expect(messages.length).toBeGreaterThan(10);
  expect(messages.filter(({ cold }) => cold).length).toBeGreaterThan(1);
});

test("the recorded session contains no home folder, registry host or container address", () => {
  const text = gunzipSync(readFileSync(FIXTURE)).toString("utf8");
  // Written in parts, so that this file does not contain them.
  const traces = [
    "/work" + "/",
    "/root" + "/(?!\\W)",
    "/home/(?!agent)\\w",
    "/Users/\\w",
    "registry\\.np" + "mjs",
    "172\\.1[78]\\.",
  ];
  expect(new RegExp(traces.join("|")).exec(text)?.[0]).toBeUndefined();
});

test("an exported session is replayed with replaced rows, without summaries and undone lines", () => {
  const say = (sequence: number, kind: string, text: string, more: object = {}) => ({
    sequence,
    role: kind === "answer" || kind === "summary" ? "assistant" : "user",
    kind,
    content: [{ type: "text", text }],
    ...more,
  });
  const input = { path: "src/a.ts", content: "a" };
  const call = { type: "tool-call", toolCallId: "c1", toolName: "write_file", input };
  const result = {
    type: "tool-result",
    toolCallId: "c1",
    toolName: "write_file",
    outcome: "completed",
    text: "Wrote it.",
  };
  const messages = [
    say(1, "task", "Write a. You must never write b."),
    say(2, "answer", "I write a, because it is asked.", {
      content: [{ type: "text", text: "I write a, because it is asked." }, call],
      compactedRound: 1,
    }),
    { sequence: 3, role: "tool", kind: "tool", content: [result], compactedRound: 1 },
    say(4, "summary", "Session Summary"),
    say(5, "answer", "Of a line that was left.", { supersededEpoch: 2 }),
    say(6, "answer", "Done."),
    say(7, "guidance", "Now c, and always in capitals."),
    say(8, "answer", "Done as well."),
  ];
  const trajectory = trajectoryOf({ format: "longhaul", messages: messages as never });
  expect(trajectory.steps).toEqual([
    { text: "I write a, because it is asked.", calls: [{ name: "write_file", input, output: "Wrote it." }] },
    { text: "Done.", calls: [] },
    { text: "Done as well.", calls: [], user: "Now c, and always in capitals.", cold: true },
  ]);
  expect(trajectory.facts.map(({ kind, key }) => `${kind}: ${key}`)).toEqual([
    "rule: You must never write b.",
    "rule: Now c, and always in capitals.",
    "decision: I write a, because it is asked.",
    "path: src/a.ts",
  ]);
});
