import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  countLines,
  TRUNCATION_MARK,
  truncateText,
  cutChars,
  cutTail,
  cutPage,
  shorten,
} from "../../activities/text/cut.ts";

const lines = (count: number): string =>
  Array.from({ length: count }, (_value, index) => `line ${index + 1}`).join("\n");

describe("truncateText", () => {
  it("leaves a text of exactly the limit unchanged", { tags: ["case-16"] }, () => {
    const text = "x".repeat(1_000);
    expect(truncateText(text, { maxChars: 1_000 })).toEqual({ text, truncated: false });
  });

  it("keeps head and tail, and says what is missing and how to read it", { tags: ["case-16"] }, () => {
    const text = `START${"m".repeat(50_000)}END`;
    const cut = truncateText(text, { maxChars: 2_000, handle: "s12c0" });
    expect(cut.text.startsWith("START")).toBe(true);
    expect(cut.text.endsWith("END")).toBe(true);
    expect(cut.text).toContain(TRUNCATION_MARK);
    expect(cut.text).toContain('read_output handle="s12c0"');
    expect(cut.text).toContain("of 50,008 characters");
    expect(cut.truncated).toBe(true);
    expect(cut.text.length).toBeLessThanOrEqual(2_000);
  });

  it("says how many lines are missing", { tags: ["case-16"] }, () => {
    const { text } = truncateText(lines(1_000), { maxChars: 1_000 });
    const [, left] = / \((\d+) lines\) left out/.exec(text) ?? [];
    // A line of which a part is left is not missing.
    expect(Number(left)).toBe(1_000 - (text.split("\n").length - 1));
  });

  it("cuts one line of 3 MB by characters", { tags: ["case-16"] }, () => {
    const cut = truncateText("y".repeat(3_000_000), { maxChars: 30_000 });
    expect(cut.text.length).toBeLessThanOrEqual(30_000);
    expect(cut.text).not.toContain("lines");
  });

  it("never cuts inside an emoji, wherever the limit falls", { tags: ["R27"] }, () => {
    const text = "😀".repeat(20_000);
    for (const maxChars of [29_998, 29_999, 30_000, 30_001]) {
      const cut = truncateText(text, { maxChars });
      expect(cut.text.isWellFormed()).toBe(true);
      expect(cut.text.length).toBeLessThanOrEqual(maxChars);
    }
  });

  it("counts against the whole if it gets only the two ends of a longer text", () => {
    const cut = truncateText("a".repeat(40_000) + "z".repeat(40_000), {
      maxChars: 30_000,
      wholeChars: 20_000_000,
    });
    expect(cut.text).toContain("of 20,000,000 characters");
    expect(cut.text.startsWith("a")).toBe(true);
    expect(cut.text.endsWith("z")).toBe(true);
  });

  it("is bounded, well-formed and made of the text's own ends, for any text and limit", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 3_000 }),
        fc.integer({ min: 300, max: 2_500 }),
        (text, maxChars) => {
          const cut = truncateText(text, { maxChars });
          expect(cut.text.length).toBeLessThanOrEqual(Math.max(maxChars, cut.truncated ? 0 : text.length));
          expect(cut.text.isWellFormed()).toBe(true);
          if (!cut.truncated) {
            expect(cut.text).toBe(text);
            return;
          }
          const [head = "", tail = ""] = cut.text.split(
            new RegExp(`\\n?${TRUNCATION_MARK.replace(/[[\]]/g, "\\$&")}[^\\n]*\\n?`),
          );
          expect(text.startsWith(head)).toBe(true);
          expect(text.endsWith(tail)).toBe(true);
        },
      ),
    );
  });
});

it("cutChars and cutTail keep at most the given length and no half of a code point", () => {
  expect(cutChars("a😀b", 2)).toBe("a");
  expect(cutChars("a😀b", 3)).toBe("a😀");
  expect(cutTail("a😀b", 2)).toBe("b");
  expect(cutTail("a😀b", 3)).toBe("😀b");
  expect(cutChars("abc", 0)).toBe("");
  expect(shorten("ab😀cd", 4)).toBe("ab…");
  expect(shorten("abc", 3)).toBe("abc");
});

describe("pageOf", () => {
  it("returns every character once, whole, for any page size", () => {
    const text = "a😀é日😀😀b";
    for (const size of [1, 2, 3, 5, 40]) {
      let read = "";
      for (let at = 0; at < text.length;) {
        const page = cutPage(text, at, size);
        expect(page.text.isWellFormed()).toBe(true);
        expect(page.end).toBeGreaterThan(at);
        read += page.text;
        at = page.end;
      }
      expect(read).toBe(text);
    }
  });

  it("begins after a character that an offset falls into", () => {
    expect(cutPage("a😀b", 2, 1)).toEqual({ text: "", end: 3 });
    expect(cutPage("a😀b", 2, 2)).toEqual({ text: "b", end: 4 });
  });
});

it("countLines counts a newline at the end as no further line", () => {
  expect([countLines(""), countLines("a"), countLines("a\n"), countLines("a\n\nb")]).toEqual([0, 1, 1, 3]);
});
