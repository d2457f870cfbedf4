/** A pull request in GitHub's form, which Gitea and Forgejo answer in too. Source: docs.github.com/rest/pulls/pulls. */
import type { ForgeCall } from "./calls.ts";
import { requirePullRequest, type KnownPullRequest } from "./forge.ts";

interface Answer {
  readonly html_url: string;
  readonly number: number;
  readonly state: string;
  readonly merged_at?: string | null;
  readonly body?: string | null;
  readonly base?: { readonly ref: string; readonly repo?: { readonly full_name: string } | null };
  readonly head?: {
    readonly sha: string;
    readonly ref?: string;
    readonly repo?: { readonly full_name: string } | null;
  };
}

/** @throws ForgeRefusal if it is no pull request */
export function readGitHubForm(
  call: ForgeCall,
  value: unknown,
): KnownPullRequest & { readonly isHere: IsHere } {
  const { html_url: url, number } = { ...(value as Partial<Answer> | null) };
  const { state, merged_at, body, base, head } = requirePullRequest(call, value as Answer, { url, number });
  return {
    url: url ?? "",
    number: number ?? 0,
    state: stateOf(state, merged_at),
    text: body ?? "",
    into: base?.ref,
    commit: head?.sha,
    isHere: (branch) => {
      if (head?.ref !== undefined && head.ref !== branch) return false;
      // Its fork was deleted.
      return head?.repo !== null && head?.repo?.full_name === base?.repo?.full_name;
    },
  };
}

/** Whether it is from this branch of this repository: a forge that does not know a filter lists all. */
type IsHere = (branch: string) => boolean;

function stateOf(state: string, merged: string | null | undefined): KnownPullRequest["state"] {
  if (state === "open") return "open";
  return typeof merged === "string" ? "merged" : "closed";
}
