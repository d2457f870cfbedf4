/** Small real images. */
import { crc32, deflateSync } from "node:zlib";

/** A PNG of one colour. */
export function png(
  width: number,
  height: number,
  [red, green, blue]: readonly [number, number, number],
): Buffer {
  const line = Buffer.alloc(width * 3, Buffer.from([red, green, blue]));
  return pngOf(width, height, () => line);
}

function pngOf(width: number, height: number, line: () => Buffer): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits a channel, three channels.
  header[8] = 8;
  header[9] = 2;
  const body = deflateSync(
    Buffer.concat(Array.from({ length: height }, () => Buffer.concat([Buffer.from([0]), line()]))),
  );
  return Buffer.concat([
    Buffer.from("\u0089PNG\r\n\u001a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", body),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

export const DOT_PNG = png(1, 1, [200, 30, 30]);

/** A PNG of about that many bytes, a picture of noise; each seed gives another. */
export function bigPng(bytes: number, seed: number): Buffer {
  const width = 1_000;
  let state = seed + 1;
  const noise = () => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) >>> 24;
  return pngOf(width, Math.ceil(bytes / (width * 3)), () =>
    Buffer.from(Array.from({ length: width * 3 }, noise)),
  );
}

function chunk(type: string, data: Buffer): Buffer {
  const name = Buffer.from(type, "latin1");
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  name.copy(frame, 4);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(data, crc32(name)), 0);
  return Buffer.concat([frame, data, check]);
}
