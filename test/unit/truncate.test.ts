import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countLines, TRUNCATION_MARK, truncateText } from "../../activities/transcript/truncate.ts";
import { cutChars, cutTail, pageOf, shorten } from "../../activities/contract/cut-text.ts";

const lines = (count: number): string =>
  Array.from({ length: count }, (_value, index) => `line ${index + 1}`).join("\n");

describe("truncateText", () => {
  it("leaves a text of exactly the limit unchanged [case 16]", () => {
    const text = "x".repeat(1_000);
    expect(truncateText(text, { maxChars: 1_000 })).toMatchObject({
      text,
      truncated: false,
      cutChars: 0,
      limit: undefined,
    });
  });

  it("keeps head and tail, and says what is missing and how to read it [case 16]", () => {
    const text = `START${"m".repeat(50_000)}END`;
    const cut = truncateText(text, { maxChars: 2_000, handle: "s12c0" });
    expect(cut.text.startsWith("START")).toBe(true);
    expect(cut.text.endsWith("END")).toBe(true);
    expect(cut.text).toContain(TRUNCATION_MARK);
    expect(cut.text).toContain('read_output handle="s12c0"');
    expect(cut.text).toContain("of 50,008 characters");
    expect(cut).toMatchObject({ truncated: true, limit: "chars", totalChars: 50_008 });
    expect(cut.text.length).toBeLessThanOrEqual(2_000);
  });

  it("cuts 100 lines to 10 and reports the 90 [case 16]", () => {
    const cut = truncateText(lines(100), { maxChars: 10_000, maxLines: 10 });
    expect(cut).toMatchObject({ cutLines: 90, totalLines: 100, limit: "lines" });
    expect(cut.text.split("\n")).toEqual([
      "line 1",
      "line 2",
      "line 3",
      "line 4",
      "line 5",
      expect.stringContaining("(90 lines)"),
      "line 96",
      "line 97",
      "line 98",
      "line 99",
      "line 100",
    ]);
  });

  it("cuts one line of 3 MB by characters [case 16]", () => {
    const cut = truncateText("y".repeat(3_000_000), { maxChars: 30_000 });
    expect(cut.text.length).toBeLessThanOrEqual(30_000);
    expect(cut.totalLines).toBe(1);
  });

  it("never cuts inside an emoji, wherever the limit falls [R27]", () => {
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
        fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined }),
        (text, maxChars, maxLines) => {
          const cut = truncateText(text, { maxChars, ...(maxLines === undefined ? {} : { maxLines }) });
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
        const page = pageOf(text, at, size);
        expect(page.text.isWellFormed()).toBe(true);
        expect(page.end).toBeGreaterThan(at);
        read += page.text;
        at = page.end;
      }
      expect(read).toBe(text);
    }
  });

  it("begins after a character that an offset falls into", () => {
    expect(pageOf("a😀b", 2, 1)).toEqual({ text: "", end: 3 });
    expect(pageOf("a😀b", 2, 2)).toEqual({ text: "b", end: 4 });
  });
});

it("countLines counts a newline at the end as no further line", () => {
  expect([countLines(""), countLines("a"), countLines("a\n"), countLines("a\n\nb")]).toEqual([0, 1, 1, 3]);
});
