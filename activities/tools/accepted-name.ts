import { createHash } from "node:crypto";
import { cutChars } from "../contract/cut-text.ts";

/** Source: providers take 64, of tools' names and Anthropic also of their arguments'. */
const MAX_CHARS = 64;
const HASH_CHARS = 8;

/** A name that every provider takes: with a hash if it does not fit, so that no two become one. Pure. */
export function acceptedName(name: string, unsafe: RegExp): string {
  const safe = name.replaceAll(unsafe, "_");
  if (safe === name && name !== "" && name.length <= MAX_CHARS) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, HASH_CHARS);
  return `${cutChars(safe, MAX_CHARS - HASH_CHARS - 1)}_${hash}`;
}
