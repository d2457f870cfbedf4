import { createHash } from "node:crypto";
import { cutChars } from "../text/cut.ts";

/** Source: providers accept 64 characters in tool names; Anthropic has the same limit for argument names. */
const MAX_CHARS = 64;
const HASH_CHARS = 8;

/** A name that every provider accepts; a name that had to be changed gets a hash, so that no two become equal. Pure. */
export function acceptedName(name: string, unsafe: RegExp): string {
  const safe = name.replaceAll(unsafe, "_");
  if (safe === name && name !== "" && name.length <= MAX_CHARS) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, HASH_CHARS);
  return `${cutChars(safe, MAX_CHARS - HASH_CHARS - 1)}_${hash}`;
}
