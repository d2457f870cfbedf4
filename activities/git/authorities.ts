/**
 * One set of certificate authorities for Node's ways out and for git's: git knows neither NODE_EXTRA_CA_CERTS, which adds to the usual
 * ones, nor (in most builds) SSL_CERT_FILE and CURL_CA_BUNDLE, which replace them.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";

/** Where systems keep the authorities that they trust. Source: Go, crypto/x509/root_linux.go, and Alpine, macOS. */
const SYSTEM = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The variables that make git trust what Node does; empty if neither was told anything. The file is written at the first call.
 * @param folder private to us: whoever can write there decides whom git trusts
 * @throws Error that names the variable whose file cannot be read
 */
export function trustOf(environment: Environment, folder: string): () => Readonly<Record<string, string>> {
  let made: Readonly<Record<string, string>> | undefined;
  return () => (made ??= variables(environment, folder));
}

function variables(environment: Environment, folder: string): Readonly<Record<string, string>> {
  if (environment["GIT_SSL_CAINFO"]) return {};
  const only = ["SSL_CERT_FILE", "CURL_CA_BUNDLE"].find((name) => environment[name]);
  const base = only === undefined ? usual() : readNamed(environment, only);
  if (!environment["NODE_EXTRA_CA_CERTS"])
    return only === undefined ? {} : { GIT_SSL_CAINFO: environment[only] ?? "" };
  const text = `${base}\n${readNamed(environment, "NODE_EXTRA_CA_CERTS")}\n`;
  const name = createHash("sha256").update(text).digest("hex").slice(0, 16);
  const path = join(folder, `authorities-${name}.pem`);
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const part = `${path}.${randomUUID().slice(0, 8)}`;
    writeFileSync(part, text, { flag: "wx", mode: 0o600 });
    renameSync(part, path);
  }
  return { GIT_SSL_CAINFO: path };
}

function usual(): string {
  const path = SYSTEM.find((known) => existsSync(known));
  return [path === undefined ? "" : readFileSync(path, "utf8"), ...rootCertificates].join("\n");
}

function readNamed(environment: Environment, name: string): string {
  const path = environment[name] ?? "";
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`${name} names ${path}, which cannot be read (${code ?? String(error)})`);
  }
}
