/**
 * Checks addresses that a repository names (submodules, a store for LFS), and not the person: they may be no program, no folder of
 * the worker, no less secure protocol, and no address inside the worker's network.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { repositoryAddress, tokenVariable } from "../config/git-settings.ts";
import { isPublicAddress } from "../config/special-addresses.ts";
import { isSameServer, type GitAccess } from "./git-access.ts";
import { quoted } from "./trouble.ts";

/**
 * Why the address is refused; undefined if it is accepted. A host in a private network is accepted if it is the repository's
 * own, or the worker has a token for it.
 * @param base the address that the person gave
 */
export async function refusedRemote(
  access: GitAccess,
  base: string,
  url: string,
): Promise<string | undefined> {
  const [address, own] = [repositoryAddress(url), repositoryAddress(base)];
  if ("wrong" in address) return `${quoted(url)} is not an accepted address: ${address.wrong}`;
  if ("wrong" in own) return own.wrong;
  if (address.kind === "file")
    return own.kind === "file"
      ? undefined
      : `${quoted(url)} is a folder, but the repository's own address is not`;
  if (address.kind === "http" && new URL(url).protocol === "http:" && !base.startsWith("http:"))
    return `${quoted(url)} is not encrypted, but the repository's own address is`;
  const host = address.host ?? "";
  if (isSameServer(base, url) || host === own.host || access.limitedTo(base).hasToken(url)) return undefined;
  if (await isPublicHost(host)) return undefined;
  return `${host} is in a private network; set ${tokenVariable(host)} where the worker runs to allow it`;
}

/** A name that does not resolve here is accepted: the proxy may resolve it, and otherwise git reports it. */
async function isPublicHost(host: string): Promise<boolean> {
  const literal = host.replace(/^\[|\]$/g, "");
  if (isIP(literal) !== 0) return isPublicAddress(literal);
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.every(({ address }) => isPublicAddress(address));
}
