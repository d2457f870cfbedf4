import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cleanText } from "../../activities/text/clean.ts";
import { MASK } from "../../activities/redaction/secret-mask.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";

const SECRET = "s3cret/Value+with=odd chars~42";
const TOKEN = `ghp_${"a1B2".repeat(9)}`;

/** Text made of critical pieces: parts of secrets and sequences, surrogates, controls. */
const nasty = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom(
        "\u001b",
        "[",
        "]",
        "6n",
        "31m",
        "\u0007",
        "\\",
        "\u0000",
        "\r",
        "\n",
        "\ud83d",
        "\ude00",
        "😀",
        "P",
        "sk-",
        "ghp_",
        "a1B2".repeat(5),
        TOKEN,
        SECRET,
        SECRET.slice(0, 9),
        SECRET.slice(9),
        " ",
        Buffer.from(SECRET).toString("base64"),
        Buffer.from(SECRET).toString("hex").slice(0, 20),
        "\\",
        "\\x73",
        "%73",
        "73 ",
        "0x",
        "\u200b",
        "eyJ",
        ".eyJ",
        "-----BEGIN PRIVATE KEY-----",
        "Authorization: Bearer ",
        "A".repeat(24),
        "\u009b",
      ),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(""));

function inPieces(
  sanitizer: { push(piece: string): string; end(): string },
  text: string,
  cuts: readonly number[],
): string {
  const ends = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].toSorted((a, b) => a - b);
  let at = 0;
  let result = "";
  for (const end of [...ends, text.length]) {
    result += sanitizer.push(text.slice(at, end));
    at = end;
  }
  return result + sanitizer.end();
}

describe("cleanText", () => {
  it("leaves ordinary text, tabs and line ends unchanged", () => {
    const text = "a\tb\r\nc\nπ 😀 日本";
    expect(cleanText(text)).toBe(text);
  });

  it("makes NUL and other controls visible and lone surrogates U+FFFD", { tags: ["R25"] }, () => {
    expect(cleanText("a\u0000b\u0007\u007f\ud83d!")).toBe("a␀b␇␡\uFFFD!");
  });

  it("strips colours, titles and the queries a terminal would answer", () => {
    expect(
      cleanText(
        "\u001b[31mred\u001b[0m \u001b]0;title\u0007\u001b[6n\u001b]11;?\u001b\\\u001bP+q\u001b\\end",
      ),
    ).toBe("red end");
  });

  it("is well-formed, free of controls, never longer, and idempotent, for any text", () => {
    fc.assert(
      fc.property(nasty, (text) => {
        const clean = cleanText(text);
        expect(clean.isWellFormed()).toBe(true);
        // oxlint-disable-next-line no-control-regex
        expect(clean).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/);
        expect(clean.length).toBeLessThanOrEqual(text.length);
        expect(cleanText(clean)).toBe(clean);
      }),
    );
  });
});

describe("createSanitizer", () => {
  const sanitizer = createSanitizer([SECRET]);

  it("hides a secret in any of its forms for any chunks", () => {
    const text = `x ${SECRET} y ${Buffer.from(SECRET).toString("base64")} z ${TOKEN} no${TOKEN} end`;
    const expected = sanitizer.clean(text);
    for (let cut = 0; cut <= text.length; cut += 1)
      expect(inPieces(sanitizer.stream(), text, [cut])).toBe(expected);
    expect(
      inPieces(
        sanitizer.stream(),
        text,
        Array.from(text, (_char, index) => index),
      ),
    ).toBe(expected);
    expect(expected).not.toContain(SECRET.slice(0, 12));
    expect(expected).toContain(`z ${MASK} no${TOKEN} end`);
  });

  it("gives the same for pieces as for the whole, for any text and any cuts", () => {
    fc.assert(
      fc.property(nasty, fc.array(fc.nat(400), { maxLength: 8 }), (text, cuts) => {
        expect(inPieces(sanitizer.stream(), text, cuts)).toBe(sanitizer.clean(text));
      }),
      { numRuns: 2_000 },
    );
  });

  it("finds a secret interleaved with terminal colours", () => {
    const woven = `${SECRET.slice(0, 7)}\u001b[1m${SECRET.slice(7)}`;
    expect(sanitizer.clean(woven)).toBe(MASK);
    expect(inPieces(sanitizer.stream(), woven, [8, 9, 10])).toBe(MASK);
  });

  it("masks a token of any length with bounded memory and passes on what follows it", () => {
    const token = `ghp_${"x".repeat(30_000)}`;
    for (const size of [1_000, 7_001, 40_000]) {
      const cuts = Array.from({ length: Math.floor(31_000 / size) }, (_value, index) => (index + 1) * size);
      expect(inPieces(sanitizer.stream(), `a ${token} b`, cuts)).toBe(`a ${MASK} b`);
    }
  });

  it("passes on a live stream at once except the last characters, with which a secret may begin", () => {
    const stream = sanitizer.stream();
    const shown = stream.push("Hello, world! How are ");
    expect("Hello, world! How are ".startsWith(shown)).toBe(true);
    expect(shown.length).toBeGreaterThan(19);
  });

  it("masks a secret that directly follows a token of another kind", () => {
    const woven = `${TOKEN}${SECRET}`;
    expect(sanitizer.clean(woven)).toBe(MASK);
    expect(inPieces(sanitizer.stream(), woven, [20, 40, 45, 50])).toBe(MASK);
  });
});
