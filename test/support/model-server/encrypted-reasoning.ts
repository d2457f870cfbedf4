/** Encrypted reasoning as the server returns it: opaque to the client, verified without stored state. Pure. */
import { createHash } from "node:crypto";

function seal(id: string, payload: string): string {
  return createHash("sha256").update(`${id}\n${payload}`).digest("base64url").slice(0, 16);
}

/** The encrypted content of a reasoning item. */
export function encryptReasoning(id: string, text: string): string {
  const payload = Buffer.from(text, "utf8").toString("base64url");
  return `gAAAA.${seal(id, payload)}.${payload}`;
}

/** Whether `encryptReasoning` made it for this item. */
export function isOurEncryption(id: string, encrypted: string): boolean {
  const [head, sealed, payload] = encrypted.split(".");
  return head === "gAAAA" && payload !== undefined && sealed === seal(id, payload);
}
