import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { expect, it } from "vitest";
import { bytesOfText, textOfBytes } from "../../../activities/store/path-text.ts";

/** Bytes that begin, continue and break characters more often than chance would. */
const byte = fc.oneof(
  fc.constantFrom(0x2f, 0x80, 0xa0, 0xbf, 0xc0, 0xc3, 0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xfc, 0xff),
  fc.integer({ min: 0, max: 255 }),
);
const name = fc.oneof(
  fc.array(byte, { maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.string({ unit: "grapheme" }).map((text) => Buffer.from(text)),
);

it("a name's text maps back to its bytes, and is well-formed if they are UTF-8", () => {
  fc.assert(
    fc.property(name, (bytes) => {
      const text = textOfBytes(bytes);
      expect(bytesOfText(text).equals(bytes)).toBe(true);
      expect(text.isWellFormed()).toBe(isUtf8(bytes));
    }),
    { numRuns: 2_000 },
  );
});

it("only invalid bytes are escaped: overlong, surrogate or beyond Unicode", () => {
  const name = Buffer.concat([
    Buffer.from("é€😀/"),
    Buffer.from([0xff, 0xc0, 0xaf, 0xed, 0xa0, 0x80, 0xf4, 0x90, 0xe2, 0x82]),
    Buffer.from("é"),
  ]);
  expect(textOfBytes(name)).toBe("é€😀/\uDCFF\uDCC0\uDCAF\uDCED\uDCA0\uDC80\uDCF4\uDC90\uDCE2\uDC82é");
});
