/** Keys that sign, made by OpenSSH's and GnuPG's own programs. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AtEnd, emptyFolder } from "./empty-folder.ts";

/** @returns the path of its private file; the public one is beside it */
export function makeSshKey(
  kind: "ed25519" | "rsa" | "ecdsa",
  options: { passphrase?: string; end?: AtEnd } = {},
): string {
  const path = join(emptyFolder(options.end), `key-${kind}`);
  execFileSync("ssh-keygen", ["-q", "-t", kind, "-N", options.passphrase ?? "", "-C", "", "-f", path]);
  return path;
}

/** The file that says whose signatures count, for `git verify-commit`. */
export function allowedSigners(keyFile: string, email: string): string {
  const path = `${keyFile}.signers`;
  writeFileSync(path, `${email} ${readFileSync(`${keyFile}.pub`, "utf8")}`);
  return path;
}

export interface GpgKeys {
  readonly home: string;
  readonly environment: NodeJS.ProcessEnv;
  /** @returns the key's fingerprint */
  make(
    email: string,
    options?: { readonly kind?: string; readonly passphrase?: string; readonly expires?: string },
  ): string;
  /** @returns the path of a file with the secret key */
  exported(fingerprint: string): string;
}

/** A folder of keys with an agent of its own, which is ended with the test. */
export function gpgKeys(end: AtEnd): GpgKeys {
  // Short: the agent's socket is in it.
  const home = mkdtempSync(join(tmpdir(), "lh-g-"));
  chmodSync(home, 0o700);
  const environment = { PATH: process.env["PATH"], HOME: home, GNUPGHOME: home };
  const gpg = (...args: string[]) =>
    execFileSync("gpg", ["--batch", "--quiet", ...args], {
      env: environment,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  end(() => {
    execFileSync("gpgconf", ["--kill", "gpg-agent"], { env: environment });
    rmSync(home, { recursive: true, force: true });
  });
  return {
    home,
    environment,
    make: (email, { kind = "ed25519", passphrase = "", expires = "never" } = {}) => {
      gpg(
        "--pinentry-mode",
        "loopback",
        "--passphrase",
        passphrase,
        "--quick-gen-key",
        `Bot <${email}>`,
        kind,
        "sign",
        expires,
      );
      const rows = gpg("--with-colons", "--list-secret-keys", email).split("\n");
      return rows.find((row) => row.startsWith("fpr:"))?.split(":")[9] ?? "";
    },
    exported: (fingerprint) => {
      const folder = join(home, "out");
      mkdirSync(folder, { recursive: true });
      const path = join(folder, `${fingerprint}.asc`);
      writeFileSync(path, gpg("--armor", "--export-secret-keys", fingerprint), { mode: 0o600 });
      return path;
    },
  };
}
