/** What a Gitea or Forgejo server can do by its own description: the two drift apart, and a version says nothing (a build may have none). */
import { readJson } from "../process/bounded-body.ts";
import { gitFetch } from "../process/remote-fetch.ts";
import type { ForgeCall } from "./calls.ts";

/** Calls that some servers have, as `METHOD /path` below the API, with `{}` for each parameter. */
export type GiteaAbility =
  | "GET /repos/{}/{}/actions/runs/{}/jobs"
  | "GET /repos/{}/{}/actions/jobs/{}/logs"
  | "POST /repos/{}/{}/actions/runs/{}/jobs/{}/rerun"
  | "POST /repos/{}/{}/pulls/comments/{}/resolve"
  | "POST /repos/{}/{}/pulls/{}/comments/{}/replies";

/** Kept for so long: a server is brought up to date while sessions wait. Chosen. */
const KEPT_MS = 60 * 60_000;
/** Chosen: the description has a megabyte. */
const TIMEOUT_MS = 20_000;

interface Known {
  readonly abilities: Promise<ReadonlySet<string>>;
  readonly untilMs: number;
}

const knownByApi = new Map<string, Known>();

/** Whether the server describes this call. A server that does not describe itself, or not now, has none of them. */
export async function giteaCan(call: ForgeCall, ability: GiteaAbility): Promise<boolean> {
  const { api } = call.forge;
  const nowMs = performance.now();
  let known = knownByApi.get(api);
  if (known === undefined || known.untilMs < nowMs) {
    known = { abilities: abilitiesOf(call), untilMs: nowMs + KEPT_MS };
    knownByApi.set(api, known);
  }
  try {
    return (await known.abilities).has(ability);
  } catch {
    // It is asked again at once: whoever asked first may have been cancelled.
    if (knownByApi.get(api) === known) knownByApi.delete(api);
    call.signal.throwIfAborted();
    return false;
  }
}

/** Without a credential, as its page for people is read. @throws whatever a request throws */
async function abilitiesOf({ forge, signal }: ForgeCall): Promise<ReadonlySet<string>> {
  const answer = await gitFetch(`${forge.api.replace(/\/api\/v1$/, "")}/swagger.v1.json`, {
    redirect: "error",
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    headers: { accept: "application/json", "user-agent": "longhaul" },
  });
  if (!answer.ok) {
    await answer.body?.cancel();
    // The operator has closed it.
    if (answer.status < 500) return new Set();
    throw new Error(`${forge.api} answered ${answer.status}`);
  }
  const { paths } = { ...((await readJson(answer)) as { readonly paths?: unknown } | null) };
  if (typeof paths !== "object" || paths === null) return new Set();
  return new Set(
    Object.entries(paths as Readonly<Record<string, unknown>>).flatMap(([path, methods]) =>
      Object.keys((methods ?? {}) as object).map(
        (method) => `${method.toUpperCase()} ${path.replaceAll(/\{[^}]*\}/g, "{}")}`,
      ),
    ),
  );
}
