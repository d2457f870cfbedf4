/** Which forge a server is whose name does not say it: asked once, without a credential. */
import { type GitConfig, parseForge, type ForgePlace } from "../config/git-settings.ts";
import { readJson } from "../process/bounded-body.ts";
import { gitFetch } from "../process/remote-fetch.ts";

/** Chosen: a person waits for it at the start of a session. */
const ASK_MS = 5_000;

/**
 * The forge that a repository is on: by the setting, else by the host's name, else by what its server answers. Gitea and Forgejo say
 * their version to everybody (`/api/v1/version`), unless their operator has closed that.
 * @returns undefined if it is not known, or the server does not answer in time
 */
export async function findForge(
  url: string,
  forge: GitConfig["forge"],
  signal: AbortSignal = new AbortController().signal,
): Promise<ForgePlace | undefined> {
  const known = parseForge(url, forge);
  if (known !== undefined || forge !== "auto") return known;
  const asGitea = parseForge(url, "gitea");
  if (asGitea === undefined) return undefined;
  try {
    const answer = await gitFetch(`${asGitea.api}/version`, {
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]),
      headers: { accept: "application/json", "user-agent": "longhaul" },
    });
    if (!answer.ok) {
      await answer.body?.cancel();
      return undefined;
    }
    return isVersion(await readJson(answer)) ? asGitea : undefined;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/** Such as 1.24.6, 11.0.1+gitea-1.22.0 (Forgejo), or `development` of a build that was not told its version. */
function isVersion(answer: unknown): boolean {
  const { version } = { ...(answer as { readonly version?: unknown } | null) };
  return typeof version === "string" && /^(v?\d+\.\d+|development)/.test(version);
}
