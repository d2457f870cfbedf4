import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { escapeHidden, HIDDEN_PATTERN, showHidden, inertMarkdown } from "../../activities/text/clean.ts";
import { harmless, harmlessJson, harmlessLine, steered, visible } from "../../client/console/format.ts";
import { escapeHtml } from "../../client/report/html.ts";
import { readPage } from "../../client/serve/server.ts";

/** All that Unicode says has no glyph or orders others, but for what needs its neighbours. */
const ignorable = fc
  .integer({ min: 0x80, max: 0xe_0f_ff })
  .map((code) => (code >= 0xd8_00 && code <= 0xdf_ff ? "a" : String.fromCodePoint(code)))
  .filter((char) => /[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Cf}\p{Zl}\p{Zp}]/u.test(char))
  // Marks of a script's numbers and verses have a glyph.
  .filter(
    (char) =>
      !/[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}\u{13430}-\u{1345f}]/u.test(char),
  );
const some = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "\u202e",
      "\u2066",
      "\u200b",
      "\u200d",
      "\ufeff",
      "\u{e0041}",
      "\u2028",
      "\ufe0f",
      "\u00ad",
      "\u061c",
      "\u3164",
    ),
  },
  { weight: 1, arbitrary: ignorable },
);

/** What each of our outputs makes of a text. */
const page = readPage().html;
const OUTPUTS: Readonly<Record<string, (text: string) => string>> = {
  terminal: harmless,
  "terminal with colours": steered,
  "one line": (text) => harmlessLine(text, 400),
  patch: visible,
  report: escapeHtml,
  "Temporal's Web UI": inertMarkdown,
  JSON: (text) => harmlessJson(JSON.stringify(text)),
  "web page": (text) => {
    const [, source = ""] = /(const HIDDEN = [^\n]+)/.exec(page) ?? [];
    const [, plain = ""] = /(function plain[^]*?\n\})/.exec(page) ?? [];
    return String(runInNewContext(`${source}\n${plain}\nplain(text)`, { text }));
  },
};

describe.each(Object.keys(OUTPUTS))("hidden characters in the output %s", (name) => {
  it("are shown as codes, whichever they are", () => {
    fc.assert(
      fc.property(some, fc.constantFrom("a", "/", "Z"), (hidden, letter) => {
        const shown = OUTPUTS[name]?.(`${letter}${hidden}${letter}`) ?? "";
        expect(shown, hidden.codePointAt(0)?.toString(16)).not.toContain(hidden);
        const code = name === "JSON" ? hidden.charCodeAt(0) : (hidden.codePointAt(0) ?? 0);
        expect(shown.toLowerCase()).toContain(code.toString(16));
      }),
      { numRuns: 400 },
    );
  });

  it.each(["👩‍💻 ❤️ 1️⃣ 👍🏽", "می‌خواهم", "क्‍ष", "naïve – 日本語 😀"])(
    "stay where a language or an emoji needs them: %s",
    (text) => {
      expect(OUTPUTS[name]?.(text)).toContain(text);
    },
  );
});

it("codes beyond the first plane are in braces, and showing twice changes nothing", () => {
  expect(showHidden("a\u202eb\u{e0041}c")).toBe(String.raw`a\u202eb\u{e0041}c`);
  expect(showHidden(showHidden("a\u202eb"))).toBe(showHidden("a\u202eb"));
  expect(JSON.parse(escapeHidden(JSON.stringify("a\u202eb\u{e0041}c")))).toBe("a\u202eb\u{e0041}c");
  expect(page).toContain(HIDDEN_PATTERN);
});
