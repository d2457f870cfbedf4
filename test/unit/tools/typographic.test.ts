/** Edits and patches written with plain quotes, dashes and blanks in a file that has typographic ones, and the other way round. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyEdit, plainCharacters } from "../../../activities/tools/text-match.ts";
import { applyChunks } from "../../../activities/tools/patch-apply.ts";

const edit = (text: string, oldString: string, newString: string, replaceAll = false) => {
  const outcome = applyEdit(text, { oldString, newString, replaceAll });
  return outcome.kind === "edited" ? outcome.text : outcome;
};

describe("an edit", () => {
  const text = "He said \u201Chello \u2013 it\u2019s me\u201D, 10\u00A0km.\nnext\n";

  it.each([
    [
      "inside a line",
      '"hello - it\'s me"',
      '"hello - it\'s you"',
      "He said \u201Chello \u2013 it\u2019s you\u201D, 10\u00A0km.\nnext\n",
    ],
    [
      "over lines",
      "it's me\", 10 km.\nnext",
      "it's me\", 20 km.\nlast",
      "He said \u201Chello \u2013 it\u2019s me\u201D, 20\u00A0km.\nlast\n",
    ],
    [
      "that adds quotes",
      "10 km",
      '"10 km"',
      'He said \u201Chello \u2013 it\u2019s me\u201D, "10\u00A0km".\nnext\n',
    ],
    ["that deletes", " - it's me", "", "He said \u201Chello\u201D, 10\u00A0km.\nnext\n"],
  ])("%s keeps the file's own characters outside of the change", (_where, oldString, newString, result) => {
    expect(edit(text, oldString, newString)).toBe(result);
  });

  it("finds plain text by typographic characters", () => {
    expect(edit('say "a" - b\n', "\u201Ca\u201D \u2013 b", "\u201Ca\u201D \u2013 c")).toBe('say "a" - c\n');
  });

  it("takes the exact place before one that only looks so", () => {
    expect(edit('\u201Ca\u201D\n"a"\n', '"a"', "b")).toBe("\u201Ca\u201D\nb\n");
  });

  it("refuses two places, unless all are to be replaced", () => {
    expect(edit("\u2018a\u2019 \u2018a\u2019\n", "'a'", "'b'")).toMatchObject({ kind: "many-matches" });
    expect(edit("\u2018a\u2019 \u2018a\u2019\n", "'a'", "'b'", true)).toBe("\u2018b\u2019 \u2018b\u2019\n");
  });

  it("keeps CRLF", () => {
    expect(edit("\u201Ca\u201D\r\nb\r\n", '"a"\nb', '"a"\nc\nd')).toBe("\u201Ca\u201D\r\nc\r\nd\r\n");
  });

  const piece = fc.constantFrom(
    "a",
    "b1",
    " ",
    "\u00A0",
    "\u2019",
    "'",
    "\u201C",
    "\u201D",
    '"',
    "-",
    "\u2013",
    "\n",
    "x",
  );
  const pieces = fc.array(piece, { minLength: 1, maxLength: 12 }).map((all) => all.join(""));

  it("changes what it says and nothing else, whatever characters stand around it", () => {
    fc.assert(
      fc.property(pieces, pieces, pieces, pieces, (before, old, after, fresh) => {
        const whole = `${before}<${old}>${after}`;
        const result = edit(whole, plainCharacters(`<${old}>`), plainCharacters(`<${fresh}>`));
        if (plainCharacters(old) === plainCharacters(fresh)) return;
        expect(typeof result).toBe("string");
        const text = typeof result === "string" ? result : "";
        expect(text.startsWith(`${before}<`) && text.endsWith(`>${after}`)).toBe(true);
        expect(plainCharacters(text)).toBe(plainCharacters(`${before}<${fresh}>${after}`));
      }),
      { numRuns: 3_000 },
    );
  });
});

it("a patch's changed line keeps the file's own characters where it does not change", () => {
  const outcome = applyChunks("one\n\u201Cold\u201D \u2013 it\u2019s here\nend\n", [
    {
      anchors: [],
      atEnd: false,
      lines: [
        { kind: "context", text: "one" },
        { kind: "remove", text: '"old" - it\'s here' },
        { kind: "add", text: '"new" - it\'s here' },
        { kind: "add", text: 'a "second" line' },
        { kind: "context", text: "end" },
      ],
    },
  ]);
  expect(outcome).toMatchObject({
    text: 'one\n\u201Cnew\u201D \u2013 it\u2019s here\na "second" line\nend\n',
  });
});
