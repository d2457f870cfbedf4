import { describe, expect, it } from "vitest";
import { coalesce } from "../../../activities/step/guidance.ts";
import type { Message, StoredMessage, UserPart } from "../../../activities/contract/message.ts";
import { parseSaid, SAID_HEADER, saidLines } from "../../../activities/compaction/session-facts.ts";
import { lostFrom } from "../../../activities/compaction/summary-check.ts";
import { renderSummary } from "../../../activities/compaction/summary-document.ts";
import { rowsOf, user } from "../../support/rows.ts";

const ROOM = 2_400;
const LONG = `Build the quay first. ${"and then the next berth, ".repeat(200)}`;

/** One row for messages that waited together, as the model sees them. */
function together(...messages: (string | readonly UserPart[])[]): Message {
  const queue = messages.map((message, at) => ({
    id: `${at}`,
    parts: typeof message === "string" ? [{ type: "text" as const, text: message }] : message,
    queuedAt: "2026-11-22T00:00:00Z",
  }));
  return { role: "user", content: coalesce(queue)?.parts ?? [] };
}

const guidance = (...messages: Message[]): StoredMessage[] =>
  rowsOf([user("the task"), ...messages]).filter((row) => row.kind === "guidance");
const section = (lines: readonly string[]): string =>
  `The task\n${SAID_HEADER}\n${lines.map((line) => `- ${line}`).join("\n")}`;

describe("a person's messages in a summary", () => {
  it("have a line for each that waited together, so that cutting the first keeps the last", () => {
    const rows = guidance(together(LONG, "use pnpm", "and commit often"), user("go on"));
    const lines = saidLines({ replaced: rows, kept: [] }, "", ROOM);
    expect(lines.map((line) => line.slice(0, 20))).toEqual([
      "[1]: Build the quay ",
      "[2]: use pnpm",
      "[3]: and commit ofte",
      "go on",
    ]);
    expect(saidLines({ replaced: guidance(together("one", "two")), kept: [] }, "", ROOM)).toEqual([
      "First: one",
      "Also: two",
    ]);
    const picture: UserPart = { type: "file", mediaType: "image/png", data: `@blob:${"0".repeat(64)}` };
    const drawn = guidance(together([{ type: "text", text: "like this" }, picture], "not that"));
    expect(saidLines({ replaced: drawn, kept: [] }, "", ROOM)).toEqual([
      "First: like this [image/png]",
      "Also: not that",
    ]);
  });

  it("give the newest more room while it is shown nowhere else, until a newer one arrives", () => {
    const [first, long, newer] = guidance(user("use pnpm"), user(LONG), user("stop there")) as [
      StoredMessage,
      StoredMessage,
      StoredMessage,
    ];
    const alone = saidLines({ replaced: [first, long], kept: [] }, "", ROOM);
    expect(alone.map((line) => line.length)).toEqual([8, ROOM * 0.6]);

    const nothingNew = saidLines({ replaced: [], kept: [] }, section(alone), ROOM);
    expect(nothingNew).toEqual(alone);

    for (const now of [
      { replaced: [newer], kept: [] },
      { replaced: [], kept: [newer] },
    ]) {
      const after = saidLines(now, section(alone), ROOM);
      expect(after.slice(0, 2).map((line) => line.length)).toEqual([8, 300]);
      const [before, next] = [alone, after].map((lines, round) =>
        renderSummary(round, {
          "Original Task": section(lines),
          "Completed Work": "",
          "Key Technical Decisions": "",
          "Current State": "",
          "Pending Work": "",
          "Errors & Resolutions": "",
        }),
      );
      expect(lostFrom(before ?? "", next ?? "")).toBeUndefined();
    }
    const shownBeside = saidLines({ replaced: [first, long], kept: [newer] }, "", ROOM);
    expect(shownBeside.map((line) => line.length)).toEqual([8, 300]);
  });

  it("drop the oldest if there is no room, and never the newest for its length", () => {
    const many = guidance(
      ...Array.from({ length: 40 }, (_, n) => user(`${n}: ${"x".repeat(200)}`)),
      user(LONG),
    );
    const lines = saidLines({ replaced: many, kept: [] }, "", ROOM);
    expect(lines.at(-1)).toHaveLength(ROOM * 0.6);
    expect(lines.length).toBeGreaterThan(8);
    expect(lines[0]).not.toMatch(/^0:/);
    expect(parseSaid(section(lines))).toEqual(lines);
  });
});
