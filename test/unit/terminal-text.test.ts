import fc from "fast-check";
import { expect, it } from "vitest";
import { terminalText } from "../../activities/sandbox/terminal-text.ts";

const ESC = "\u001B";

it("shows 3,000 frames of progress as one line", () => {
  const frames = Array.from({ length: 3_000 }, (_value, at) => `\r${((at / 3_000) * 100).toFixed(1)}%`).join(
    "",
  );
  expect(terminalText(`start\n${frames}\r100.0%\ndone\n`)).toBe("start\n100.0%\ndone\n");
});

it.each([
  ["CRLF", "a\r\nb\r\n", "a\nb\n"],
  ["a line overwritten by a shorter one", "12345\rab\n", "ab345\n"],
  ["a carriage return at the end", "50%\r", "50%"],
  ["backspaces", "10%\b\b\b20%\n", "20%\n"],
  ["a spinner", "work |\b/\b-\b\\\bdone\n", "work done\n"],
  ["more backspaces than text", "\b\b\bx\n", "x\n"],
  ["an erased line", `downloading${ESC}[2K\rdone\n`, "done\n"],
  ["an erased rest of a line", `downloading\r${ESC}[Kok\n`, "ok\n"],
  ["an erased beginning", `abcdef${ESC}[3D${ESC}[1K\n`, "    ef\n"],
  ["colours in a redrawn line", `${ESC}[32m10%${ESC}[0m\r${ESC}[32m99%${ESC}[0m\n`, "99%\n"],
  ["lines redrawn together", `a 1%\nb 1%\n${ESC}[2Aa 9%\nb 9%\n`, "a 9%\nb 9%\n"],
  ["a column", `abc${ESC}[1Gx\n`, "xbc\n"],
  ["a jump over nothing", `a${ESC}[3Cb\n`, "a   b\n"],
  ["what is erased below", `a\nb\nc\n${ESC}[2A${ESC}[Jd\n`, "a\nd\n"],
  [
    "a cleared screen, below what came before",
    `built\n${ESC}[2J${ESC}[Hframe 1\n${ESC}[2J${ESC}[Hframe 2\n`,
    "built\nframe 2\n",
  ],
  ["a screen drawn over", `${ESC}[Hone\ntwo\n${ESC}[Hsix\n`, "six\ntwo\n"],
  ["a second screen", `a\n${ESC}[?1049hpager\n${ESC}[?1049lb\n`, "a\nb\n"],
  ["a hidden cursor and a title", `${ESC}[?25l${ESC}]0;title\u0007a\rb\n`, "b\n"],
  ["characters of two units", "\u{1F600}\u{1F600}\rab\n", "ab\n"],
])("shows %s as a terminal does at the end", (_what, printed, shown) => {
  expect(terminalText(printed)).toBe(shown);
});

it("leaves text alone that redraws nothing", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme" }).filter((text) => !["\r", "\b", ESC].some((one) => text.includes(one))),
      (text) => {
        expect(terminalText(text)).toBe(text);
        expect(terminalText(`x\r\n${text}`)).toBe(`x\n${text}`);
      },
    ),
  );
});

it("takes whatever was printed, in bounded time", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "a",
      "bc",
      "\n",
      "\r",
      "\b",
      `${ESC}[A`,
      `${ESC}[99B`,
      `${ESC}[K`,
      `${ESC}[J`,
      `${ESC}[2J`,
      `${ESC}[5;9H`,
      `${ESC}[P`,
      `${ESC}[9X`,
      `${ESC}c`,
    ),
    fc.string({ maxLength: 5 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      terminalText(pieces.join(""));
    }),
    { numRuns: 5_000 },
  );
  const started = performance.now();
  terminalText(`${ESC}[9999C\r`.repeat(20_000));
  terminalText(`${ESC}[9999Cx\n`.repeat(2_000));
  terminalText(`${ESC}[500;9999Hx${ESC}[2J`.repeat(2_000));
  terminalText("a\n\r".repeat(100_000));
  expect(performance.now() - started).toBeLessThan(5_000);
});
