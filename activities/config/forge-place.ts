/** Which forge a repository is on, by its address and the setting `git.forge`. Pure. */
import { repositoryAddress, usualHost, type GitConfig } from "./git-settings.ts";

export interface ForgePlace {
  readonly kind: "github" | "gitlab";
  readonly api: string;
  /** `owner/name`; GitLab's may have more parts. */
  readonly project: string;
}

/** @returns undefined if the address is of no known forge. Pure. */
export function forgeOf(url: string, forge: GitConfig["forge"]): ForgePlace | undefined {
  const short = /^[^@/]+@([^:/]+):(.+)$/.exec(url);
  const parsed = short === null ? URL.parse(url) : null;
  const host = usualHost(short?.[1] ?? parsed?.hostname ?? "");
  const path = (short?.[2] ?? parsed?.pathname ?? "").replace(/^\/+|\/+$/g, "").replace(/\.git$/, "");
  if (host === "" || !path.includes("/")) return undefined;
  const kind = forge === "auto" ? guessed(host) : forge;
  if (kind === undefined) return undefined;
  const isWeb = parsed !== null && /^https?:$/.test(parsed.protocol);
  const origin = isWeb ? parsed.origin : `https://${host}`;
  if (kind === "gitlab") return { kind, api: `${origin}/api/v4`, project: path };
  // GitHub's own API has a separate host; that of GitHub Enterprise is below the server's address.
  return { kind, api: host === "github.com" ? "https://api.github.com" : `${origin}/api/v3`, project: path };
}

function guessed(host: string): ForgePlace["kind"] | undefined {
  if (host === "github.com" || host.startsWith("github.")) return "github";
  return host === "gitlab.com" || host.startsWith("gitlab.") ? "gitlab" : undefined;
}

/** Why a repository has no pull requests. */
export function noForge(url: string): string {
  const address = repositoryAddress(url);
  const isFolder = !("wrong" in address) && address.kind === "file";
  return `No pull request can be opened for ${url}: ${isFolder ? "it is a folder" : "it is not known which forge it is on"}.`;
}
