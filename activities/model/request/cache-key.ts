/** A session's key in its provider's cache. Pure. */
import { createHash } from "node:crypto";

/** Source: OpenAI refuses the whole request with a longer one. */
const MAX_CHARS = 64;

/**
 * The session's id; a longer one, as of delegates of long ids and of runs started by hand, is replaced by its SHA-256
 * in hex: 64 characters.
 */
export function cacheKeyOf(sessionId: string): string {
  return sessionId.length <= MAX_CHARS ? sessionId : createHash("sha256").update(sessionId).digest("hex");
}
