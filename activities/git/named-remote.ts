/**
 * Checks addresses that a repository names (submodules, a store for LFS), and not the person: they may be no program, no folder of
 * the worker, no less secure protocol, no use of the worker's ssh key, and no address inside the worker's network.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { repositoryAddress } from "../config/git-settings.ts";
import { howToName, isBeside, isNamed, isSameServer, type Named } from "../config/repository-place.ts";
import { isPublicAddress } from "../config/special-addresses.ts";
import { quoted } from "./trouble.ts";

/**
 * Why the address is refused; undefined if it is accepted. A host in a private network is accepted if it is the repository's
 * own, or the person named the address.
 */
export async function refusedRemote(named: Named, url: string): Promise<string | undefined> {
  const { url: base } = named;
  const [address, own] = [repositoryAddress(url), repositoryAddress(base)];
  if ("wrong" in address) return `${quoted(url)} is not an accepted address: ${address.wrong}`;
  if ("wrong" in own) return own.wrong;
  if (address.kind === "file") {
    if (own.kind !== "file") return `${quoted(url)} is a folder, but the repository's own address is not`;
    return isNamed(named, url) || isBeside(base, url)
      ? undefined
      : `${quoted(url)} is a folder elsewhere on the worker; ${howToName(url)}`;
  }
  if (address.kind === "http" && new URL(address.url).protocol === "http:" && !base.startsWith("http:"))
    return `${quoted(url)} is not encrypted, but the repository's own address is`;
  if (isNamed(named, url)) return undefined;
  if (address.kind === "ssh") return `the worker's ssh key is not used for ${quoted(url)}; ${howToName(url)}`;
  const host = address.host ?? "";
  if (isSameServer(base, url) || (await isPublicHost(host))) return undefined;
  return `${host} is in a private network; ${howToName(url)}`;
}

/** A name that does not resolve here is accepted: the proxy may resolve it, and otherwise git reports it. */
async function isPublicHost(host: string): Promise<boolean> {
  const literal = host.replace(/^\[|\]$/g, "");
  if (isIP(literal) !== 0) return isPublicAddress(literal);
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.every(({ address }) => isPublicAddress(address));
}
