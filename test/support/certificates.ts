/** A certificate authority of a test's own, and a certificate of it for this machine. */
import { execFileSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findOnPath } from "../../client/setup/processes.ts";

export interface Certificates {
  /** Folder with ca.pem, cert.pem and key.pem, the latter two for clients as well. */
  readonly folder: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Why none can be made here; undefined if they can. */
export const noCertificates = (): string | undefined =>
  findOnPath("openssl") === undefined ? "openssl is not on PATH" : undefined;

export function makeCertificates(folder: string): Certificates {
  const at = (name: string) => join(folder, name);
  const openssl = (...args: readonly string[]) =>
    execFileSync("openssl", args, { cwd: folder, stdio: "ignore" });
  const newKey = ["-newkey", "rsa:2048", "-nodes"];
  openssl(
    "req",
    "-x509",
    ...newKey,
    "-keyout",
    "ca-key.pem",
    "-out",
    "ca.pem",
    "-days",
    "2",
    "-subj",
    "/CN=Test CA",
  );
  openssl("req", ...newKey, "-keyout", "key.pem", "-out", "asked.pem", "-subj", "/CN=localhost");
  writeFileSync(at("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
  const authority = ["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial"];
  openssl(
    "x509",
    "-req",
    "-in",
    "asked.pem",
    ...authority,
    "-out",
    "cert.pem",
    "-days",
    "2",
    "-extfile",
    "names",
  );
  chmodSync(at("key.pem"), 0o600);
  return { folder, ca: at("ca.pem"), cert: at("cert.pem"), key: at("key.pem") };
}
