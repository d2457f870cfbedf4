import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readText, writeText } from "../../activities/text/encoding.ts";

/** Texts in encodings that only a converter writes: their bytes in hex. */
const OLD = {
  GBK: ["2f2f20c4e3bac30a", "// \u4F60\u597D\n"],
  "Shift-JIS": ["2320836583588367 0a93fa967b8cea0a", "# \u30C6\u30B9\u30C8\n\u65E5\u672C\u8A9E\n"],
  "EUC-JP": ["a4b3a4eca4cfc6fccbdcb8eca4c7a4b90a", "\u3053\u308C\u306F\u65E5\u672C\u8A9E\u3067\u3059\n"],
  "EUC-KR": ["bec8b3e7c7cfbcbcbfe40a", "\uC548\uB155\uD558\uC138\uC694\n"],
  Big5: [
    "b4fab8d5c0c9aed7a141b36fac4fbd73bd58b4fab8d50a",
    "\u6E2C\u8A66\u6A94\u6848\uFF0C\u9019\u662F\u7DE8\u78BC\u6E2C\u8A66\n",
  ],
  "Latin-1": ["4772fcdf6520617573204bf66c6e0a", "Gr\u00FC\u00DFe aus K\u00F6ln\n"],
  "windows-1251": [
    "cff0e8e2e5f22c20ece8f0210a",
    "\u041F\u0440\u0438\u0432\u0435\u0442, \u043C\u0438\u0440!\n",
  ],
  "KOI8-R": ["f0d2c9d7c5d42c20cdc9d2210a", "\u041F\u0440\u0438\u0432\u0435\u0442, \u043C\u0438\u0440!\n"],
} as const;

describe("readText", () => {
  it.each(Object.entries(OLD))("shows text in %s, and says that it is a guess", (name, [hex, text]) => {
    const found = readText(Buffer.from(hex.replaceAll(" ", ""), "hex"));
    expect(found).toMatchObject({ kind: "guessed", name, text });
  });

  const scripts = [
    "Hello, world! 12",
    "Gr\u00FC\u00DFe \u2013 \u201Cja\u201D",
    "\u65E5\u672C\u8A9E\u306E\u30C6\u30B9\u30C8 a",
    "\uC548\uB155 b",
    "\u041F\u0440\u0438\u0432\u0435\u0442 c",
    "\u{1F600} d",
  ];
  const line = fc
    .tuple(fc.constantFrom(...scripts), fc.constantFrom("\n", "\r\n"))
    .map((parts) => parts.join(""));
  const text = fc.array(line, { minLength: 1, maxLength: 30 }).map((lines) => lines.join(""));
  const form = fc.record({
    encoding: fc.constantFrom("utf-8" as const, "utf-16le" as const, "utf-16be" as const),
    bom: fc.boolean(),
  });

  it("reads UTF-8 and UTF-16, with and without a mark, and writes the same bytes", () => {
    fc.assert(
      fc.property(text, form, (written, its) => {
        const bytes = writeText(written, its);
        const found = readText(bytes);
        expect(found).toMatchObject({ kind: "text", text: written, form: its });
        expect(found.kind === "text" && writeText(found.text, found.form)).toEqual(bytes);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    [0xfe, 0xff, 0xfe, 0xff],
    [0xff, 0xfe, 0xff, 0xfe, 0x41, 0],
    [0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf, 0x41],
  ])("keeps a mark that follows the mark", (...given) => {
    const found = readText(Uint8Array.from(given));
    expect(found.kind).toBe("text");
    if (found.kind === "text") expect([...writeText(found.text, found.form)]).toEqual(given);
  });

  it("writes back the bytes of whatever it takes for text", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc
        .array(fc.constantFrom(0, 9, 10, 0x41, 0x61, 0x20, 0xc3, 0xa9, 0xff, 0xfe, 0xef, 0xbb, 0xbf))
        .map((all) => Uint8Array.from(all)),
    );
    fc.assert(
      fc.property(bytes, (given) => {
        const found = readText(given);
        if (found.kind === "text")
          expect(Buffer.from(writeText(found.text, found.form))).toEqual(Buffer.from(given));
      }),
      { numRuns: 20_000 },
    );
  });

  it.each([
    ["text with one zero byte", "abc\0def\n"],
    ["a longer one", `${"a line of a log\n".repeat(20)}\0${"a line of a log\n".repeat(20)}`],
  ])("takes %s for what it is, not for UTF-16", (_what, written) => {
    expect(readText(Buffer.from(written))).toMatchObject({ form: { encoding: "utf-8" }, text: written });
  });

  it.each(["7f454c460201010000ff000000000000", "ffd8ffe000104a46494600010100", "fffe61006200 00d8"])(
    "takes %s for no text",
    (hex) => expect(readText(Buffer.from(hex.replaceAll(" ", ""), "hex"))).toEqual({ kind: "binary" }),
  );
});
