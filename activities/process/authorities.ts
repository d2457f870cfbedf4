/**
 * The certificate authorities of the surroundings, read once for all ways out of this process and for the programs that it starts:
 * Node reads NODE_EXTRA_CA_CERTS only, and git neither that nor (in most builds) SSL_CERT_FILE and CURL_CA_BUNDLE.
 */
import { createHash, randomUUID, X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import tls from "node:tls";

/** Where systems keep the authorities that they trust. Source: Go, crypto/x509/root_linux.go, and Alpine, macOS. */
const SYSTEM = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** In curl and git, all but the first replace the usual ones; git looks at the last one first. */
const VARIABLES = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"] as const;
type Variable = (typeof VARIABLES)[number];

type Environment = Readonly<Record<string, string | undefined>>;

/** A file of authorities that cannot be used; the message begins with its variable. */
export class AuthoritiesUnusable extends Error {
  override readonly name = "AuthoritiesUnusable";
  readonly variable: Variable;

  constructor(variable: Variable, is: string, cause?: unknown) {
    super(`${variable} names ${is}`, { cause });
    this.variable = variable;
  }
}

let trusted = "[]";

/**
 * From now on every TLS connection of this process trusts, beside the usual authorities, those of each variable: models' providers,
 * forges, LFS, MCP servers, notices, Postgres and the client's connection to Temporal. Idempotent.
 * @returns the variables that are set
 * @throws AuthoritiesUnusable
 */
export function trustAuthorities(environment: Environment = process.env): readonly string[] {
  const named = VARIABLES.filter((name) => environment[name]);
  const files = JSON.stringify(named.map((name) => environment[name]));
  if (files === trusted) return named;
  const added = named.flatMap((name) => certificatesOf(environment, name));
  trust(named, added);
  trusted = files;
  return named;
}

/** Node reads the first variable itself. For the others it must be told, which older releases do not let us. */
function trust(named: readonly Variable[], added: readonly string[]): void {
  const [further] = named.filter((name) => name !== "NODE_EXTRA_CA_CERTS");
  if ("setDefaultCACertificates" in tls)
    tls.setDefaultCACertificates([...new Set([...tls.getCACertificates("default"), ...added])]);
  else if (further !== undefined)
    throw new AuthoritiesUnusable(
      further,
      `authorities that Node ${process.version} cannot be told: use Node 22.19, 24.5 or newer, or NODE_EXTRA_CA_CERTS`,
    );
}

function certificatesOf(environment: Environment, name: Variable): string[] {
  const text = readNamed(environment, name);
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (certificates.length === 0)
    throw new AuthoritiesUnusable(name, `${environment[name]}, which holds no certificate in PEM`);
  for (const certificate of certificates)
    try {
      void new X509Certificate(certificate);
    } catch (cause) {
      throw new AuthoritiesUnusable(
        name,
        `${environment[name]}, in which a certificate cannot be read`,
        cause,
      );
    }
  return certificates;
}

/**
 * The variables that make git trust what Node does; empty if neither was told anything. The file is written at the first call.
 * @param folder private to us: whoever can write there decides whom git trusts
 * @throws AuthoritiesUnusable
 */
export function createTrust(
  environment: Environment,
  folder: string,
): () => Readonly<Record<string, string>> {
  let made: Readonly<Record<string, string>> | undefined;
  return () => (made ??= variables(environment, folder));
}

function variables(environment: Environment, folder: string): Readonly<Record<string, string>> {
  const only = (["GIT_SSL_CAINFO", "SSL_CERT_FILE", "CURL_CA_BUNDLE"] as const).find(
    (name) => environment[name],
  );
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
  return [path === undefined ? "" : readFileSync(path, "utf8"), ...tls.rootCertificates].join("\n");
}

function readNamed(environment: Environment, name: Variable): string {
  const path = environment[name] ?? "";
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new AuthoritiesUnusable(name, `${path}, which cannot be read (${code ?? String(error)})`, error);
  }
}
