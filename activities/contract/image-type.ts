const latin = (bytes: Uint8Array, from: number, to: number): string =>
  String.fromCharCode(...bytes.subarray(from, to));

/** Media type of an image from its first bytes, whatever its name; undefined for a type that models do not accept. */
export function imageTypeOf(bytes: Uint8Array): string | undefined {
  if (latin(bytes, 0, 8) === "\u0089PNG\r\n\u001a\n") return "image/png";
  if (latin(bytes, 0, 3) === "\u00ff\u00d8\u00ff") return "image/jpeg";
  if (latin(bytes, 0, 6) === "GIF87a" || latin(bytes, 0, 6) === "GIF89a") return "image/gif";
  if (latin(bytes, 0, 4) === "RIFF" && latin(bytes, 8, 12) === "WEBP") return "image/webp";
  return undefined;
}

export function isPdf(bytes: Uint8Array): boolean {
  return latin(bytes, 0, 5) === "%PDF-";
}
