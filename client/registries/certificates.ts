/** The certificate authorities that a person's machine trusts beyond the public ones, such as a company's. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { readBoundedText } from "../console/read-bounded-text.ts";
import type { Environment } from "../../activities/config/providers.ts";

/** Variables that name a certificate bundle for tools, the most common first. */
const VARIABLES = [
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  "REQUESTS_CA_BUNDLE",
  "PIP_CERT",
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "CARGO_HTTP_CAINFO",
];
/** Folders for an administrator's additions: on Debian and Alpine, Fedora, Arch. */
const LOCAL_FOLDERS = [
  "/usr/local/share/ca-certificates",
  "/etc/pki/ca-trust/source/anchors",
  "/etc/ca-certificates/trust-source/anchors",
];
/** The public authorities as packaged by Debian, which has more than Node. */
const PUBLIC_FOLDER = "/usr/share/ca-certificates";

/**
 * PEM text of the authorities that the machine trusts in addition to the public ones; undefined if there are none. Only
 * certificates: anything else in a file, such as a key, is skipped.
 */
export function extraCertificates(environment: Environment): string | undefined {
  const files = new Set(VARIABLES.map((name) => environment[name] ?? ""));
  const texts = [...files].filter((path) => path !== "").map(textIn);
  const found = certificatesIn([...texts, ...LOCAL_FOLDERS.flatMap(readFolder)].join("\n"));
  const added = without(found, rootCertificates);
  return added.length === 0
    ? undefined
    : joined(without(added, certificatesIn(readFolder(PUBLIC_FOLDER).join("\n"))));
}

function without(certificates: readonly string[], known: readonly string[]): string[] {
  const contents = new Set(known.map(bare));
  return certificates.filter((certificate) => !contents.has(bare(certificate)));
}

/** The distinct certificates of a PEM text, without comments and keys; undefined if there are none. */
export const onlyCertificates = (text: string): string | undefined => joined(certificatesIn(text));

const certificatesIn = (text: string): string[] =>
  text.match(/-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g) ?? [];

function joined(certificates: readonly string[]): string | undefined {
  const byContent = new Map(
    certificates.map((certificate) => [bare(certificate), certificate.replaceAll("\r", "")]),
  );
  return byContent.size === 0 ? undefined : `${[...byContent.values()].join("\n")}\n`;
}

const bare = (certificate: string): string => certificate.replaceAll(/\s/g, "");

function textIn(path: string): string {
  try {
    return readBoundedText(path);
  } catch {
    return "";
  }
}

function readFolder(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(crt|pem)$/.test(name))
      .map((name) => textIn(join(folder, name)));
  } catch {
    return [];
  }
}
