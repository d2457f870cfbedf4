import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { roundMessage } from "../../../activities/follow/round-message.ts";
import type { Reason } from "../../../activities/follow/verdict.ts";

const thread = (index: number, text: string, comments = 1): Reason => ({
  kind: "thread",
  thread: {
    id: `T${index}`,
    path: `src/\u0000\u001b[31m${"long/".repeat(500)}${index}\n"}.ts`,
    line: index,
    isResolved: false,
    comments: Array.from({ length: comments }, (_, id) => ({
      id: index * 1_000 + id,
      author: { id: 1, login: "ann" },
      text: `${id}: ${text}`,
      changedAt: "2026-11-27T08:00:00Z",
    })),
  },
});

const message = (reasons: readonly Reason[], parts: Readonly<Record<string, string>> = {}) =>
  roundMessage({
    number: 1,
    url: "https://forge.test/1",
    branch: "longhaul/a",
    head: "a".repeat(40),
    base: "main",
    baseCommit: undefined,
    isOnTop: false,
    reasons,
    evidence: new Map(Object.entries(parts).map(([name, part]) => [name, { part, handle: "h" }])),
    canReply: true,
  });

/** What is data in it. */
const dataIn = (texts: readonly string[]): readonly unknown[] =>
  texts.slice(1).flatMap((text) => (/^[[{]/.test(text) ? [JSON.parse(text) as unknown] : []));

describe("the message of a round", () => {
  it("stays in bounds with 300 threads of 60 KB comments, and names the rest (F30)", () => {
    const reasons = Array.from({ length: 300 }, (_, index) => thread(index, "x".repeat(60_000), 40));
    const texts = message(reasons);
    expect(texts.join("\n").length).toBeLessThan(120_000);
    expect(texts.at(-2)).toBe("270 more are not shown:");
    const data = dataIn(texts);
    expect(data).toHaveLength(31);
    expect(data[0]).toMatchObject({ thread: "T0", commentsLeftOut: 30 });
    // The first comment says what it is about, the last what is wanted now.
    const [first] = data as readonly { readonly comments: readonly { readonly text: string }[] }[];
    expect(first?.comments.map(({ text }) => text.split(":")[0])).toEqual(
      [0, ...Array.from({ length: 9 }, (_, index) => 31 + index)].map(String),
    );
    expect(JSON.stringify(data.at(-1))).toContain('"thread":"T200"');
  });

  it("has all of a conflict's and a check's names cut", () => {
    const name = "n".repeat(100_000);
    const files = Array.from({ length: 5_000 }, () => name);
    const check = { name, state: "failed", isRequired: true, url: undefined, job: "1" } as const;
    const texts = message(
      [
        { kind: "check", check },
        { kind: "conflict", files },
      ],
      { [name]: "y".repeat(100_000) },
    );
    expect(texts.join("\n").length).toBeLessThan(40_000);
    expect(dataIn(texts)[1]).toMatchObject({ of: 5_000 });
  });

  it("has what others wrote as JSON alone, which no text of theirs leaves (invariant 8)", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        const texts = message([thread(1, text), { kind: "changes", by: text, mark: "review 1" }]);
        expect(texts).toHaveLength(3);
        const [ours = "", ...data] = texts;
        expect(ours).not.toContain("ann");
        for (const part of data) {
          expect(part).not.toContain("\n");
          expect(() => JSON.parse(part) as unknown).not.toThrow();
        }
      }),
    );
  });
});
