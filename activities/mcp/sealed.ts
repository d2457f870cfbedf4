/** Encrypts what must not be read from the database: AES-256-GCM, bound to what it belongs to. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { McpFailure } from "./mcp-failure.ts";

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Source: 32 random bytes as hexadecimal have 64, as base64 44. */
const MIN_SECRET_CHARS = 32;

export interface Sealer {
  /** Identifies the key that sealed something, and reveals nothing of the key. */
  readonly keyId: string;
  seal(text: string, of: string): Uint8Array;
  /** @throws McpFailure if another key sealed it, or it belongs to something else */
  open(sealed: Uint8Array, of: string): string;
}

/** @throws McpFailure if the secret is missing or short */
export function createSealer(secret: string | undefined): Sealer {
  if (secret === undefined || secret.length < MIN_SECRET_CHARS)
    throw new McpFailure(
      `logins are kept encrypted, and LONGHAUL_CREDENTIALS_KEY is not set to at least ${MIN_SECRET_CHARS} characters (openssl rand -hex 32 makes some; client and worker need the same)`,
    );
  const key = createHash("sha256").update(secret).digest();
  return {
    keyId: createHash("sha256").update(key).digest("hex").slice(0, 8),
    seal(text, of) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(of));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), body]);
    },
    open(sealed, of) {
      try {
        const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE_BYTES))
          .setAAD(Buffer.from(of))
          .setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
        return (
          decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES), undefined, "utf8") +
          decipher.final("utf8")
        );
      } catch {
        throw new McpFailure("its login was encrypted with another LONGHAUL_CREDENTIALS_KEY");
      }
    },
  };
}
