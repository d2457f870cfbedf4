import { describe, expect, it } from "vitest";
import { withoutMetadata } from "../../../activities/tools/store-image.ts";
import { bigPng, DOT_PNG } from "../../support/images.ts";

const SECRET = "s3cret-in-a-comment";
const latin = (text: string) => Buffer.from(text, "latin1");
const u16 = (value: number) => Buffer.from([value >> 8, value & 0xff]);

function pngChunk(type: string, data: Buffer): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(data.length);
  return Buffer.concat([size, latin(type), data, Buffer.alloc(4)]);
}

function webpChunk(type: string, data: Buffer): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(data.length);
  return Buffer.concat([latin(type), size, data, Buffer.alloc(data.length % 2)]);
}

function webp(...chunks: Buffer[]): Buffer {
  const body = Buffer.concat(chunks);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(body.length + 4);
  return Buffer.concat([latin("RIFF"), size, latin("WEBP"), body]);
}

const segment = (marker: number, data: Buffer) =>
  Buffer.concat([Buffer.from([0xff, marker]), u16(data.length + 2), data]);
const subBlocks = (data: Buffer) => Buffer.concat([Buffer.from([data.length]), data, Buffer.from([0])]);

const pngHead = DOT_PNG.length - 12;
const comment = latin(SECRET);
const scan = Buffer.concat([segment(0xda, Buffer.alloc(6)), Buffer.from([1, 0xff, 0, 2, 0xff, 0xd0, 3])]);
const gifHead = Buffer.concat([latin("GIF89a"), Buffer.from([1, 0, 1, 0, 0x80, 0, 0]), Buffer.alloc(6)]);
const gifPicture = Buffer.concat([
  Buffer.from([0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2]),
  subBlocks(Buffer.from([0x44, 1])),
]);
const gifLoop = Buffer.concat([
  Buffer.from([0x21, 0xff, 11]),
  latin("NETSCAPE2.0"),
  subBlocks(Buffer.from([1, 0, 0])),
]);
const vp8x = (flags: number) => webpChunk("VP8X", Buffer.from([flags, 0, 0, 0, 0, 0, 0, 0, 0, 0]));

const images: Readonly<Record<string, readonly [dirty: Buffer, clean: Buffer]>> = {
  "image/png": [
    Buffer.concat([
      DOT_PNG.subarray(0, pngHead),
      pngChunk("tEXt", comment),
      pngChunk("zTXt", comment),
      pngChunk("eXIf", comment),
      pngChunk("meTa", comment),
      DOT_PNG.subarray(pngHead),
      comment,
    ]),
    DOT_PNG,
  ],
  "image/jpeg": [
    Buffer.concat([
      Buffer.from([0xff, 0xd8]),
      segment(0xe0, latin("JFIF\0")),
      segment(0xe1, comment),
      segment(0xfe, comment),
      segment(0xdb, Buffer.alloc(3)),
      scan,
      segment(0xfe, comment),
      scan,
      Buffer.from([0xff, 0xd9]),
      comment,
    ]),
    Buffer.concat([
      Buffer.from([0xff, 0xd8]),
      segment(0xe0, latin("JFIF\0")),
      segment(0xdb, Buffer.alloc(3)),
      scan,
      scan,
      Buffer.from([0xff, 0xd9]),
    ]),
  ],
  "image/gif": [
    Buffer.concat([
      gifHead,
      gifLoop,
      Buffer.from([0x21, 0xfe]),
      subBlocks(comment),
      gifPicture,
      Buffer.from([0x3b]),
      comment,
    ]),
    Buffer.concat([gifHead, gifLoop, gifPicture, Buffer.from([0x3b])]),
  ],
  "image/webp": [
    Buffer.concat([
      webp(
        vp8x(0x10 | 0x08 | 0x04),
        webpChunk("VP8 ", Buffer.from([1, 2, 3])),
        webpChunk("EXIF", comment),
        webpChunk("XMP ", comment),
      ),
      comment,
    ]),
    webp(vp8x(0x10), webpChunk("VP8 ", Buffer.from([1, 2, 3]))),
  ],
};

describe.each(Object.entries(images))("%s", (mediaType, [dirty, clean]) => {
  it("loses its comments and trailing data, and keeps its picture", () => {
    expect(dirty.includes(SECRET)).toBe(true);
    expect(withoutMetadata(dirty, mediaType)).toEqual(clean);
    expect(withoutMetadata(clean, mediaType)).toEqual(clean);
  });

  it("is rejected if it was cut off or changed, and never an error", () => {
    for (let length = 12; length < clean.length; length += 1)
      expect(() => withoutMetadata(clean.subarray(0, length), mediaType)).not.toThrow();
    expect(
      withoutMetadata(Buffer.concat([clean.subarray(0, 12), Buffer.alloc(40, 0x7f)]), mediaType),
    ).toBeUndefined();
  });
});

it("leaves a large picture unchanged", () => {
  const picture = bigPng(200_000, 1);
  expect(withoutMetadata(picture, "image/png")).toEqual(picture);
});
