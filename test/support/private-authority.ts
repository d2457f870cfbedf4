/** A certificate authority of a test's own, and servers whose certificates it signed. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:https";
import { join } from "node:path";
import { type AtEnd, emptyFolder } from "./empty-folder.ts";
import { listen } from "./listen.ts";

/** A certificate authority, and its certificate for these names. @returns paths */
export function issueCertificate(
  names: readonly string[] = ["localhost"],
  end?: AtEnd,
): {
  readonly authority: string;
  readonly key: string;
  readonly certificate: string;
} {
  const folder = emptyFolder(end);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const fresh = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  // Without it, Python 3.13 does not take it for an authority.
  const signs = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"];
  const root = ["-subj", "/CN=Private authority", ...signs];
  openssl("req", "-x509", ...fresh, ...root, "-keyout", "ca.key", "-out", "ca.pem");
  const leaf = ["authorityKeyIdentifier=keyid", "basicConstraints=critical,CA:FALSE"];
  const extensions = [`subjectAltName=${names.map((host) => `DNS:${host}`).join(",")}`, ...leaf].flatMap(
    (text) => ["-addext", text],
  );
  const name = ["-subj", "/CN=localhost", ...extensions];
  const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "key.pem", "-out", "cert.pem"];
  openssl("req", "-x509", ...fresh, ...name, ...signed);
  return {
    authority: join(folder, "ca.pem"),
    key: join(folder, "key.pem"),
    certificate: join(folder, "cert.pem"),
  };
}

/** The same server behind TLS. @returns its origin */
export async function behindTls(plainUrl: string, key: string, certificate: string): Promise<string> {
  const server = createServer(
    { key: readFileSync(key), cert: readFileSync(certificate) },
    (incoming, response) => {
      const { method, headers } = incoming;
      const upstream = request(new URL(incoming.url ?? "", plainUrl), { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(response);
      });
      incoming.pipe(upstream);
    },
  );
  return `https://localhost:${await listen(server)}`;
}
