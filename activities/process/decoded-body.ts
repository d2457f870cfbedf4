/** A response's body without its compression, for servers that compress although they were asked not to. */
import { pipeline, type Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";

const DECODERS = new Map<string, () => Transform>([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
  ["zstd", createZstdDecompress],
]);

/** @param encodings the header `content-encoding`; the last one is undone first, and from an unknown one on nothing is */
export function decodedBody(body: Readable, encodings: string | null): Readable {
  let decoded = body;
  for (const name of (encodings ?? "").split(",").toReversed()) {
    const decoder = DECODERS.get(name.trim().toLowerCase())?.();
    if (decoder === undefined) return decoded;
    // Whoever reads the result gets the error.
    decoded = pipeline(decoded, decoder, () => undefined);
  }
  return decoded;
}
