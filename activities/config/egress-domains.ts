/** The domains that `sandbox.network: listed` allows: patterns, groups, and what is wrong with one. */
import { isIP } from "node:net";
import { containedIn, toPrefix, isPublicAddress } from "./addresses.ts";

/** Hosts that package managers contact by default. */
const PACKAGES = [
  // npm, pnpm, yarn; downloads of corepack and node-gyp.
  "registry.npmjs.org",
  "registry.yarnpkg.com",
  "repo.yarnpkg.com",
  "nodejs.org",
  // pip, uv.
  "pypi.org",
  "files.pythonhosted.org",
  // cargo, rustup.
  "crates.io",
  "index.crates.io",
  "static.crates.io",
  "static.rust-lang.org",
  // go.
  "proxy.golang.org",
  "sum.golang.org",
  // Maven, Gradle.
  "repo.maven.apache.org",
  "repo1.maven.org",
  "plugins.gradle.org",
  "services.gradle.org",
  "downloads.gradle.org",
  // RubyGems, Packagist, NuGet.
  "rubygems.org",
  "index.rubygems.org",
  "repo.packagist.org",
  "api.nuget.org",
  // Debian and Ubuntu.
  "deb.debian.org",
  "security.debian.org",
  "archive.ubuntu.com",
  "security.ubuntu.com",
];

/** Forges over https, with the hosts that serve their archives, releases and large files. */
const GIT = [
  "github.com",
  "codeload.github.com",
  "raw.githubusercontent.com",
  "objects.githubusercontent.com",
  "release-assets.githubusercontent.com",
  "media.githubusercontent.com",
  "github-cloud.githubusercontent.com",
  "gitlab.com",
  "bitbucket.org",
  "codeberg.org",
];

const GROUPS: Readonly<Record<string, readonly string[]>> = {
  "group:packages": PACKAGES,
  "group:git": GIT,
};

/** Source: RFC 1035, 2.3.4. */
const MAX_NAME_CHARS = 253;
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;

/**
 * Why a text is not valid in `sandbox.domains`; undefined if it is: a host name, `*.name` for its subdomains, an IPv4
 * address, or a group.
 */
export function domainProblem(text: string): string | undefined {
  if (text.startsWith("group:"))
    return text in GROUPS ? undefined : `no such group: there are ${Object.keys(GROUPS).join(" and ")}`;
  const pattern = normalDomain(text);
  if (pattern === "*")
    return "* would let everything through: use sandbox.network: bridge for the whole internet";
  const name = pattern.startsWith("*.") ? pattern.slice(2) : pattern;
  const labels = name.split(".");
  if (/[:/@]/.test(name)) return "expected only a host name, without scheme, port or path";
  if (name.includes("*"))
    return "* is allowed only at the front, as in *.example.com, which means every name below";
  if (name.length > MAX_NAME_CHARS || !labels.every((label) => LABEL.test(label)))
    return "expected a host name such as registry.npmjs.org (international names as xn--…)";
  if (/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? "") && (pattern !== name || !IPV4.test(name)))
    return "its last part is a number: expected a host name, or an IPv4 address of four parts";
  if (pattern !== name && labels.length < 2)
    return `${pattern} would let a whole top-level domain through: name the hosts, or *.name below it`;
  return undefined;
}

/** Why the proxy refuses a domain even if it is listed; undefined if it does not. @param allow the session's `sandbox.allow` */
export function closedAddress(domain: string, allow: readonly string[]): string | undefined {
  if (isIP(domain) === 0 || isPublicAddress(domain) || containedIn(allow.map(toPrefix))(domain))
    return undefined;
  return `${domain} is not on the public internet, and sandbox.allow does not open it`;
}

/** The form that the proxy compares: lower case, without a trailing dot. */
const normalDomain = (text: string): string => text.toLowerCase().replace(/\.$/, "");

/** Patterns only, groups replaced by their members, each once. */
export function expandDomains(domains: readonly string[]): string[] {
  return [...new Set(domains.flatMap((name) => GROUPS[name] ?? [normalDomain(name)]))];
}
