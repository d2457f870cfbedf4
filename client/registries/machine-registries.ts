/**
 * The package registries and certificate authorities of a person's machine, read from their tools' own settings. Addresses
 * only: a name or password in one is left out and reported. Files of the current folder are not read: they may have come
 * with a cloned repository.
 */
import { PIP_INDEX } from "../../activities/config/public-registries.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { readBoundedText } from "../console/read-bounded-text.ts";

export interface MachineRegistries extends FoundRegistries {
  /** PEM; undefined if the machine trusts the public authorities only. */
  readonly certificates: string | undefined;
}

/** Debian's home folder for users without one, which does not exist. */
const NO_HOME = "/nonexistent";

export function registriesOfMachine(environment: Environment): MachineRegistries {
  const registries = findRegistries({ environment, home: environment["HOME"] || NO_HOME, read });
  return { ...registries, certificates: extraCertificates(environment) };
}

function read(path: string): string | undefined {
  try {
    return readBoundedText(path);
  } catch {
    return undefined;
  }
}

type Ecosystem = "npm" | "pip" | "cargo" | "go" | "maven";
/** The addresses for each ecosystem with a private registry, the main one first. */
export type RegistryAddresses = { readonly [Name in Ecosystem]?: readonly string[] | undefined };

export interface PersonsMachine {
  readonly environment: Environment;
  readonly home: string;
  /** Returns a file's text; undefined if it cannot be read. */
  readonly read: (path: string) => string | undefined;
}

export interface FoundRegistries {
  readonly registries: RegistryAddresses;
  /** What was omitted, one per line. */
  readonly notes: readonly string[];
}

const READERS: Readonly<Record<Ecosystem, (machine: PersonsMachine) => readonly (string | undefined)[]>> = {
  npm: npmRegistry,
  pip: pipIndexes,
  cargo: cratesSource,
  go: goProxies,
  maven: mavenMirror,
};

export function findRegistries(machine: PersonsMachine): FoundRegistries {
  const entries = Object.entries(READERS).map(([name, read]) => [name, read(machine)] as const);
  return withoutCredentials(
    Object.fromEntries(
      entries.map(([name, addresses]) => [name, addresses.filter((address) => address !== undefined)]),
    ),
  );
}

/** The same addresses without names and passwords; invalid web addresses are omitted. */
export function withoutCredentials(registries: RegistryAddresses): FoundRegistries {
  const notes: string[] = [];
  const plainEntries = Object.entries(registries).map(([name, addresses]) => {
    const plain = addresses.flatMap((address) => {
      if (name === "go" && /^(direct|off)$/.test(address)) return [address];
      if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol)) return [];
      const url = new URL(address);
      if (url.username === "" && url.password === "") return [address];
      url.username = url.password = "";
      notes.push(
        `The address of the ${name} registry ${url.host} contains a name or a password: the sandbox gets the address without them.`,
      );
      return [url.href];
    });
    return [name, plain] as const;
  });
  return { registries: Object.fromEntries(plainEntries.filter(([, plain]) => plain.length > 0)), notes };
}

function npmRegistry({ environment, home, read }: PersonsMachine): (string | undefined)[] {
  // npm sets the lower-case variable for its child processes, also from the current folder's .npmrc.
  const byNpm = environment["npm_command"] !== undefined;
  const set = environment["NPM_CONFIG_REGISTRY"] ?? (byNpm ? undefined : environment["npm_config_registry"]);
  const file = environment["NPM_CONFIG_USERCONFIG"] ?? `${home}/.npmrc`;
  return [set || iniValue(read(file), "", "registry")];
}

/** Source: pip's user guide, "Configuration": global, user, the named file, then the environment. */
function pipIndexes({ environment, home, read }: PersonsMachine): (string | undefined)[] {
  const config = environment["XDG_CONFIG_HOME"] || `${home}/.config`;
  const files = [
    environment["PIP_CONFIG_FILE"],
    `${config}/pip/pip.conf`,
    `${home}/Library/Application Support/pip/pip.conf`,
    `${home}/.pip/pip.conf`,
    "/etc/pip.conf",
  ].map((path) => (path === undefined ? undefined : read(path)));
  const value = (name: string) =>
    environment[`PIP_${name.toUpperCase().replace("-", "_")}`] ||
    files.map((text) => iniValue(text, "global", name)).find((text) => text !== undefined);
  const [main, more] = [value("index-url") ?? environment["UV_DEFAULT_INDEX"], value("extra-index-url")];
  if (main === undefined && more === undefined) return [];
  return [main ?? PIP_INDEX, ...(more?.split(/\s+/) ?? [])];
}

/**
 * The replacement for the public registry, if it is a sparse registry. Parses only the TOML of these settings: a section
 * each, with quoted strings. Source: the Cargo book, "Source replacement".
 */
function cratesSource({ environment, home, read }: PersonsMachine): (string | undefined)[] {
  const folder = environment["CARGO_HOME"] || `${home}/.cargo`;
  const text = (read(`${folder}/config.toml`) ?? read(`${folder}/config`))?.replaceAll(
    /^(\[.*\])/gm,
    (head) => head.replaceAll(/["'\s]/g, ""),
  );
  const value = (section: string, name: string) =>
    /^(["'])(.*?)\1/.exec(`${iniValue(text, `source.${section}`, name, "raw")}`)?.[2];
  const replacement = value("crates-io", "replace-with");
  const registry = replacement === undefined ? undefined : value(replacement, "registry");
  return [registry?.startsWith("sparse+") === true ? registry.slice("sparse+".length) : undefined];
}

function goProxies({ environment, home, read }: PersonsMachine): (string | undefined)[] {
  const files = [
    environment["GOENV"],
    `${environment["XDG_CONFIG_HOME"] || `${home}/.config`}/go/env`,
    `${home}/Library/Application Support/go/env`,
  ].map((path) => (path === undefined ? undefined : read(path)));
  const set =
    environment["GOPROXY"] || files.map((text) => iniValue(text, "", "GOPROXY")).find((value) => value);
  return set?.split(/[,|]/) ?? [];
}

/** The mirror for Maven Central, for everything, or for everything that is not local. */
function mavenMirror({ home, read }: PersonsMachine): (string | undefined)[] {
  const text = (read(`${home}/.m2/settings.xml`) ?? "").replaceAll(/<!--[\s\S]*?-->/g, "");
  const mirrors = [...text.matchAll(/<mirror>([\s\S]*?)<\/mirror>/g)].map(([, mirror = ""]) => ({
    of: /<mirrorOf>\s*(.*?)\s*<\/mirrorOf>/.exec(mirror)?.[1] ?? "",
    url: /<url>\s*(.*?)\s*<\/url>/.exec(mirror)?.[1],
  }));
  return [
    mirrors.find(({ of }) => of.split(",").some((name) => /^(central|\*|external:\*)$/.test(name)))?.url,
  ];
}

/** The value of `name` in a section, without quotes and comments; `section` is empty for lines before the first section. */
function iniValue(
  text: string | undefined,
  section: string,
  name: string,
  quotes: "off" | "raw" = "off",
): string | undefined {
  let current = "";
  let setting: string | undefined;
  let going = false;
  for (const line of (text ?? "").split("\n")) {
    // A value may continue on the next lines, if they begin with a space.
    if (going && /^\s+[^\s#;]/.test(line)) {
      setting = `${setting} ${line.trim()}`.trim();
      continue;
    }
    going = false;
    const head = /^\s*\[([^\]]*)\]/.exec(line);
    if (head !== null) current = head[1] ?? "";
    const [, key, value] = /^\s*([^=#;\s]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (current !== section || key === undefined || key.replaceAll("_", "-") !== name.replaceAll("_", "-"))
      continue;
    setting = quotes === "raw" ? value : value?.replace(/^(["'])(.*)\1$/, "$2");
    going = true;
  }
  return setting === "" ? undefined : setting;
}

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
function extraCertificates(environment: Environment): string | undefined {
  const files = new Set(VARIABLES.map((name) => environment[name] ?? ""));
  const texts = [...files].filter((path) => path !== "").map(textIn);
  const certificates = certificatesIn([...texts, ...LOCAL_FOLDERS.flatMap(readFolder)].join("\n"));
  const added = without(certificates, rootCertificates);
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
