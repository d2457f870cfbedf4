/** Which repository an address names, on which server, and whether the person named it. */
import { dirname } from "node:path/posix";
import { expandDomains } from "./egress-domains.ts";
import { repositoryAddress, usualHost, type GitConfig } from "./git-settings.ts";
import type { RunConfig } from "./agent-config.ts";
import { fitsPattern } from "../text/lists.ts";

/** What a person named: a repository, and patterns of others that a session on it may use too. */
export interface NamedRepositories {
  readonly url: string;
  readonly also?: GitConfig["also"];
}

interface Place {
  readonly kind: "http" | "ssh" | "file";
  /** With its port, unless that is the usual one. Empty for a folder. */
  readonly server: string;
  readonly path: string;
}

/** @returns undefined for an address that is not accepted, or whose path a server may read in more than one way */
function placeOf(url: string): Place | undefined {
  const address = repositoryAddress(url);
  if ("wrong" in address) return undefined;
  const parsed = URL.parse(address.url);
  const short = address.kind === "ssh" && parsed?.protocol !== "ssh:";
  // As it is written: what a server makes of `..` or `%2e` is its own business.
  const written = short
    ? address.url.slice(address.url.indexOf(":") + 1)
    : address.url.replace(/^[a-z]+:\/\/[^/]*/i, "");
  const path = written
    .replace(/^\/+|\/+$/g, "")
    .replace(/\/info\/lfs$/, "")
    .replace(/\.git$/, "");
  const isPlain =
    path === "" ||
    path.split("/").every((part) => part !== "" && part !== "." && part !== ".." && !/[%\\;]/.test(part));
  if (!isPlain) return undefined;
  // A pattern without a port is for encrypted protocols.
  const port = parsed?.protocol === "http:" ? parsed.port || "80" : (parsed?.port ?? "");
  return { kind: address.kind, server: serverOf(address.host ?? "", short ? "" : port), path };
}

/** A forge's other names for itself count as its own, on the port that goes with them. */
function serverOf(host: string, port: string): string {
  const usual = usualHost(host);
  const isUsual = port === "" || port === "22" || (usual !== host.toLowerCase() && port === "443");
  return isUsual ? usual : `${usual}:${port}`;
}

/** Over HTTP also the same scheme and port, so that no token goes to a less secure server of the same name. */
export function isSameServer(one: string, other: string): boolean {
  const [a, b] = [repositoryAddress(one), repositoryAddress(other)];
  if ("wrong" in a || "wrong" in b || a.host === undefined || b.host === undefined) return false;
  if (a.kind === "http" && b.kind === "http") return new URL(a.url).origin === new URL(b.url).origin;
  const [host, otherHost] = [a, b].map(({ url, host: name = "" }) =>
    serverOf(name, /^[a-z]+:\/\//i.test(url) ? new URL(url).port : ""),
  );
  return host === otherHost;
}

/** Whether the person named this repository: only for those does the worker use a credential, or what its network reaches. */
export function isNamed({ url: own, also = [] }: NamedRepositories, url: string): boolean {
  if (url === own) return true;
  const [place, ours] = [placeOf(url), placeOf(own)];
  if (place === undefined) return false;
  if (ours !== undefined && place.path === ours.path) {
    if (place.kind === "file" ? ours.kind === "file" : isSameServer(own, url)) return true;
  }
  return also.some((pattern) => fits(pattern, place));
}

/** Whether both are folders, side by side. */
export function isBeside(own: string, url: string): boolean {
  const [place, ours] = [placeOf(url), placeOf(own)];
  return place?.kind === "file" && ours?.kind === "file" && dirname(place.path) === dirname(ours.path);
}

function fits(pattern: string, { kind, server, path }: Place): boolean {
  const [host = "", ...rest] = pattern.replace(/\.git$/, "").split("/");
  const [, name = "", port = ""] = /^(.*?)(?::(\d+))?$/.exec(host) ?? [];
  if ((kind === "file") !== (host === "") || (kind !== "file" && serverOf(name, port) !== server))
    return false;
  const parts = path.split("/");
  const open = rest.at(-1) === "**";
  const fixed = open ? rest.slice(0, -1) : rest;
  if (open ? parts.length <= fixed.length : parts.length !== fixed.length) return false;
  return fixed.every((part, at) => fitsPattern(part, parts[at] ?? ""));
}

/** What a person can do to let sessions use a repository that they did not name. */
export function howToName(url: string): string {
  const repository = placeOf(url);
  if (repository === undefined) return "name it in git.also in a form without special characters to use it";
  const pattern = `${repository.server}/${repository.path || "**"}`;
  return `to use it in sessions on this repository, add git.also: [${pattern}] to your own longhaul.yaml, or start with --also ${pattern}`;
}

/** The part of a session's settings that says what its sandbox may reach. */
export type NetworkRule = Pick<RunConfig["sandbox"], "network" | "domains">;

/**
 * Whether work may leave for this address by a session's network rule: always for what the person named, and for the server that
 * they named.
 */
export function isWithinNetwork(
  { network, domains }: NetworkRule,
  named: NamedRepositories,
  url: string,
): boolean {
  if (network === "bridge" || isNamed(named, url) || isSameServer(named.url, url)) return true;
  const address = repositoryAddress(url);
  if ("wrong" in address) return false;
  // A folder is on no network.
  if (address.kind === "file") return true;
  if (network === "none") return false;
  const host = address.host?.toLowerCase() ?? "";
  return expandDomains(domains).some((domain) =>
    domain.startsWith("*.") ? host.endsWith(domain.slice(1)) : host === domain,
  );
}
