/** Settings of the programs in a sandbox that use its keys: addresses, and a placeholder where a program insists on a token. */
import { type KeyDefinition, type KeyDefinitions, placeOfKey } from "./key-settings.ts";

/** What the sandbox has in place of a value. The proxy replaces it. */
const placeholderOf = (name: string): string => `longhaul-key-${name}`;

interface ClientSettings {
  readonly env: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
}

/** In the home folder of the tools' user: it stays theirs if they have one that is not ours. */
const NPM_FILE = "~/.npmrc";
const MAVEN_FILE = "/etc/longhaul/maven-settings.xml";
/** The first line of a file in the home folder, by which it is known as ours. Equal to OWN_LINE in settings.py. */
const OWN_LINE = "# By longhaul: keys";

type Recipe<Name> = Extract<KeyDefinition, { registry: Name }>;
type Named<Key> = readonly (readonly [name: string, key: Key])[];

/** @param keys those that the session has */
export function keyClients(keys: KeyDefinitions): ClientSettings {
  const entries = Object.entries(keys);
  const of = <Name extends string>(kind: Name): Named<Recipe<Name>> =>
    entries.flatMap(([name, key]) =>
      "registry" in key && key.registry === kind ? [[name, key as Recipe<Name>] as const] : [],
    );
  const [npm, maven] = [of("npm"), of("maven")];
  return {
    env: {
      ...Object.fromEntries(entries.map(([name]) => [tokenVariable(name), placeholderOf(name)])),
      ...pipVariables(of("pip")),
      ...Object.assign({}, ...of("cargo").map(([name, key]) => cargoVariables(name, key))),
      ...goVariables(of("go"), entries),
      ...(maven.length === 0 ? {} : { MAVEN_ARGS: `-s ${MAVEN_FILE}` }),
    },
    files: {
      ...(npm.length === 0 ? {} : { [NPM_FILE]: npmFile(npm) }),
      ...(maven.length === 0 ? {} : { [MAVEN_FILE]: mavenFile(maven) }),
    },
  };
}

const tokenVariable = (name: string): string => `${name.toUpperCase().replaceAll("-", "_")}_TOKEN`;

function addressOf(key: KeyDefinition & { readonly path: string }): string {
  const { host, port } = placeOfKey(key);
  return `https://${host}${port === 443 ? "" : `:${port}`}${key.path}`;
}

function npmFile(keys: Named<Recipe<"npm">>): string {
  const lines = keys.flatMap(([name, key]) => [
    `${key.scope === undefined ? "" : `${key.scope}:`}registry=${addressOf(key)}`,
    `${addressOf(key).slice("https:".length)}:_authToken=${placeholderOf(name)}`,
  ]);
  return [OWN_LINE, ...lines, ""].join("\n");
}

function pipVariables(keys: Named<Recipe<"pip">>): Record<string, string> {
  const [main, ...more] = keys.map(([, key]) => addressOf(key));
  return {
    ...(main === undefined ? {} : { PIP_INDEX_URL: main, UV_DEFAULT_INDEX: main }),
    ...(more.length === 0 ? {} : { PIP_EXTRA_INDEX_URL: more.join(" "), UV_INDEX: more.join(" ") }),
  };
}

/** Cargo refuses a registry that wants a token if it has none, or does not know where to look for it. */
function cargoVariables(name: string, key: Recipe<"cargo">): Record<string, string> {
  const variable = `CARGO_REGISTRIES_${key.name.toUpperCase().replaceAll("-", "_")}`;
  return {
    [`${variable}_INDEX`]: `sparse+${addressOf(key)}`,
    [`${variable}_TOKEN`]: placeholderOf(name),
    [`${variable}_CREDENTIAL_PROVIDER`]: "cargo:token",
  };
}

/** A module of a private repository is in no public proxy and no public checksum database. */
function goVariables(proxies: Named<Recipe<"go">>, all: Named<KeyDefinition>): Record<string, string> {
  const repositories = all.flatMap(([, key]) => {
    if (!("git" in key)) return [];
    const { host } = placeOfKey(key);
    return key.repositories.map((repository) => `${host}/${repository}`);
  });
  const modules = [...proxies.flatMap(([, key]) => key.modules), ...repositories];
  const variables = {
    GOPROXY: proxies.map(([, key]) => addressOf(key)).join(","),
    GOPRIVATE: repositories.join(","),
    GONOSUMDB: proxies.length === 0 ? "" : modules.join(","),
  };
  return Object.fromEntries(Object.entries(variables).filter(([, text]) => text !== ""));
}

function mavenFile(keys: Named<Recipe<"maven">>): string {
  const servers = keys.map(
    ([name]) =>
      `<server><id>${name}</id><username>longhaul</username><password>${placeholderOf(name)}</password></server>`,
  );
  const mirrors = keys.map(
    ([name, key]) =>
      `<mirror><id>${name}</id><mirrorOf>${key.mirrorOf}</mirrorOf><url>${addressOf(key)}</url></mirror>`,
  );
  return `<settings><servers>${servers.join("")}</servers><mirrors>${mirrors.join("")}</mirrors></settings>\n`;
}
