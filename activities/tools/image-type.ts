/** Media type of an image by its first bytes, whatever its name says; undefined where it is none that models take. */
export function imageTypeOf(bytes: Uint8Array): string | undefined {
  const latin = (from: number, to: number): string =>
    Buffer.from(bytes.subarray(from, to)).toString("latin1");
  if (latin(0, 8) === "\u0089PNG\r\n\u001a\n") return "image/png";
  if (latin(0, 3) === "\u00ff\u00d8\u00ff") return "image/jpeg";
  if (latin(0, 6) === "GIF87a" || latin(0, 6) === "GIF89a") return "image/gif";
  if (latin(0, 4) === "RIFF" && latin(8, 12) === "WEBP") return "image/webp";
  return undefined;
}

export function isPdf(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, 5)).toString("latin1") === "%PDF-";
}
