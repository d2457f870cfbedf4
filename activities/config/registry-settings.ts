/** Package registry settings for the sandbox's tools, and the registries' hosts. */
import type { RunConfig } from "./agent-config.ts";
import type { Registries } from "./sandbox-settings.ts";
import { PUBLIC_REGISTRIES } from "./public-registries.ts";

type SandboxSettings = Pick<RunConfig["sandbox"], "registries" | "inherited" | "network">;

export interface RegistrySettings {
  readonly env: Readonly<Record<string, string>>;
  /** Files owned by the sandbox's root, by path, for tools that read no variable. */
  readonly files: Readonly<Record<string, string>>;
  /** `host:port` of each registry. */
  readonly hosts: readonly string[];
}

/**
 * Points package managers' download caches to the folder that sessions share. Most cache there by default. Files are
 * copied out of it, because hard links across file systems are impossible.
 */
export function cacheVariables(folder: string): Record<string, string> {
  return {
    npm_config_cache: `${folder}/npm`,
    pnpm_config_store_dir: `${folder}/pnpm`,
    UV_LINK_MODE: "copy",
    CARGO_HOME: `${folder}/cargo`,
    GOMODCACHE: `${folder}/go-mod`,
    MAVEN_OPTS: `-Dmaven.repo.local=${folder}/maven`,
  };
}

const MAVEN_FILE = "/etc/longhaul/maven-settings.xml";
/** Cargo reads the settings of all folders above the project: no variable overrides its registry. */
const CARGO_FILE = "/.cargo/config.toml";

export function registrySettings(sandbox: SandboxSettings): RegistrySettings {
  if (sandbox.registries === "none" || sandbox.network === "none") return { env: {}, files: {}, hosts: [] };
  const inherits = sandbox.registries === "inherit";
  const registries = inherits ? (sandbox.inherited?.registries ?? {}) : (sandbox.registries as Registries);
  const { cargo: [crates] = [], maven: [mirror] = [] } = registries;
  return {
    env: { ...variables(registries), ...(mirror === undefined ? {} : { MAVEN_ARGS: `-s ${MAVEN_FILE}` }) },
    files: {
      ...(crates === undefined ? {} : { [CARGO_FILE]: cargoFile(crates) }),
      ...(mirror === undefined ? {} : { [MAVEN_FILE]: mavenFile(mirror) }),
    },
    // In a company network even the public names may resolve to a private address.
    hosts: [
      ...new Set([
        ...Object.values(registries).flatMap((addresses) => hostsOf(addresses ?? [])),
        ...(inherits ? PUBLIC_REGISTRIES.map((host) => `${host}:443`) : []),
      ]),
    ],
  };
}

/** Names of private registries: named by the person or found on their machine, they are listed with `network: listed`. */
export function listedRegistries(sandbox: SandboxSettings): string[] {
  const publicHosts = PUBLIC_REGISTRIES.map((host) => `${host}:443`);
  const { hosts } = registrySettings(sandbox);
  return hosts.filter((host) => !publicHosts.includes(host)).map((host) => host.replace(/:\d+$/, ""));
}

function variables({
  npm: [npm] = [],
  pip: [index, ...more] = [],
  go = [],
}: Registries): Record<string, string> {
  return {
    ...(npm === undefined
      ? {}
      : {
          npm_config_registry: npm,
          COREPACK_NPM_REGISTRY: npm.replace(/\/+$/, ""),
          YARN_NPM_REGISTRY_SERVER: npm,
        }),
    ...(index === undefined ? {} : { PIP_INDEX_URL: index, UV_DEFAULT_INDEX: index }),
    ...(more.length === 0 ? {} : { PIP_EXTRA_INDEX_URL: more.join(" "), UV_INDEX: more.join(" ") }),
    ...(go.length === 0 ? {} : { GOPROXY: go.join(",") }),
  };
}

const hostsOf = (addresses: readonly string[]): string[] =>
  addresses.flatMap((address) => {
    if (!URL.canParse(address)) return [];
    const { hostname, port, protocol } = new URL(address);
    return [`${hostname}:${port || (protocol === "https:" ? "443" : "80")}`];
  });

const cargoFile = (address: string): string =>
  `[source.crates-io]\nreplace-with = "mirror"\n\n[source.mirror]\nregistry = ${JSON.stringify(`sparse+${address}`)}\n`;

function mavenFile(address: string): string {
  const url = address.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<settings><mirrors><mirror><id>mirror</id><mirrorOf>central</mirrorOf><url>${url}</url></mirror></mirrors></settings>\n`;
}
