/** Bytes as they travel in the supervisor's protocol. */
export const toBytes = (base64: unknown): Uint8Array => Buffer.from(String(base64), "base64");

export const toBase64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
