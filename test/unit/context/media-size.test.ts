/** The size of pictures and the pages of PDFs, from their bytes. */
import { deflateSync, inflateSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_STREAM_BYTES, mediaSize } from "../../../activities/store/media.ts";
import { png } from "../../support/images.ts";

const inflate = (bytes: Uint8Array) => {
  try {
    return inflateSync(bytes);
  } catch {
    return undefined;
  }
};
const sizeOf = (bytes: Uint8Array, mediaType: string) => mediaSize(bytes, mediaType, inflate);
const latin = (text: string) => Buffer.from(text, "latin1");
const webp = (kind: string, rest: readonly number[]) =>
  Buffer.concat([latin(`RIFF....WEBP${kind}....`), Buffer.from(rest)]);

describe("the size of a picture", () => {
  it.each([
    ["PNG", "image/png", png(300, 20, [1, 2, 3])],
    ["GIF", "image/gif", Buffer.concat([latin("GIF89a"), Buffer.from([0x2c, 1, 20, 0])])],
    [
      "JPEG behind its other segments",
      "image/jpeg",
      Buffer.from([255, 216, 255, 224, 0, 4, 0, 0, 255, 255, 196, 0, 3, 0, 255, 194, 0, 11, 8, 0, 20, 1, 44]),
    ],
    ["lossy WebP", "image/webp", webp("VP8 ", [0, 0, 0, 0x9d, 1, 0x2a, 0x2c, 1, 20, 0])],
    ["lossless WebP", "image/webp", webp("VP8L", [0x2f, 0x2b, 0xc1, 4, 0])],
    ["extended WebP", "image/webp", webp("VP8X", [0, 0, 0, 0, 0x2b, 1, 0, 19, 0, 0])],
  ])("is read from a %s", (_, mediaType, bytes) => {
    expect(sizeOf(bytes, mediaType)).toEqual({ width: 300, height: 20 });
  });

  it("is unknown for any bytes that do not contain it", () => {
    const types = fc.constantFrom("image/png", "image/gif", "image/jpeg", "image/webp", "application/pdf");
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), types, (bytes, type) => {
        const size = sizeOf(bytes, type);
        expect(Object.values(size).every((value) => value > 0)).toBe(true);
      }),
    );
    expect(sizeOf(png(3, 3, [1, 2, 3]).subarray(0, 18), "image/png")).toEqual({});
  });
});

describe("the pages of a PDF", () => {
  const page = "<< /Type /Page /Parent 2 0 R >>\n";
  it("are counted without their tree's nodes", () => {
    const bytes = latin(`%PDF-1.4\n<< /Type /Pages /Count 3 >>\n${page}<</Type/Page>>\n${page}`);
    expect(sizeOf(bytes, "application/pdf")).toEqual({ pages: 3 });
  });

  it("are counted within compressed object streams", () => {
    const head = latin("%PDF-1.5\n1 0 obj << /Type /ObjStm /Filter /FlateDecode >>\nstream\r\n");
    const bytes = Buffer.concat([head, deflateSync(latin(page.repeat(7))), latin("\nendstream\nendobj\n")]);
    expect(sizeOf(bytes, "application/pdf")).toEqual({ pages: 7 });
  });

  it("are unknown if the file is encrypted or damaged", () => {
    expect(sizeOf(latin("%PDF-1.5\n/ObjStm stream\nnonsense"), "application/pdf")).toEqual({});
  });

  it("are looked for no longer than a while, whatever the file holds", () => {
    let inflated = 0;
    const most = (bytes: Uint8Array) => {
      inflated += 1;
      return inflate(bytes);
    };
    const stream = Buffer.concat([
      latin("/ObjStm /ObjStm /ObjStm stream\n"),
      deflateSync(Buffer.alloc(MAX_STREAM_BYTES)),
    ]);
    mediaSize(stream, "application/pdf", most);
    expect(inflated).toBe(1);
    mediaSize(Buffer.concat(Array.from({ length: 50 }, () => stream)), "application/pdf", most);
    expect(inflated).toBeLessThan(20);
    mediaSize(latin("/ObjStm stream nonsense ".repeat(50)), "application/pdf", most);
    expect(inflated).toBeLessThan(40);
  });
});
