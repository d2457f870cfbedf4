/**
 * What Longhaul does on a forge, as every adapter offers it. One adapter a file: `github.ts`, `gitlab.ts`, `gitea.ts` (Forgejo too).
 * They know a forge's paths, fields and words; what is decided from them is the same for all.
 */
import { cutChars } from "../text/cut.ts";
import { serverWords } from "../process/remote-fetch.ts";
import { ForgeRefusal, type ForgeCall } from "./calls.ts";

const MAX_SHOWN_CHARS = 300;

/** A pull request (GitLab's merge request) to make. */
export interface PullRequestOrder {
  readonly branch: string;
  /** The branch that it is to be merged into. */
  readonly into: string;
  readonly title: string;
  readonly text: string;
  readonly draft: boolean;
}

/** A pull request as the forge has it. */
export interface KnownPullRequest {
  readonly url: string;
  readonly number: number;
  readonly state: "open" | "closed" | "merged";
  readonly text: string;
  readonly into: string | undefined;
  /** The newest commit of its branch; when it was merged, the last one. */
  readonly commit: string | undefined;
}

export interface Forge {
  /**
   * Pull requests from this branch of this repository, newest first, whatever became of them and wherever they go: a person may have
   * changed the target. None of forks, whose branches may have the same name and which anybody can make.
   */
  pullRequestsFrom(call: ForgeCall, branch: string): Promise<readonly KnownPullRequest[]>;
  /** @throws ForgeRefusal, with 409 or 422 if the branch may have one already */
  createPullRequest(call: ForgeCall, request: PullRequestOrder): Promise<KnownPullRequest>;
  /** Replaces the text, and nothing else. */
  writeText(call: ForgeCall, number: number, text: string): Promise<void>;
  /** The repository's own path in the API: it answers with the name that the repository has now. */
  repositoryPath(project: string): string;
}

/** Only what has a number and an address is a pull request: a proxy, or a forge that has only taken the order, answers otherwise. */
export function requirePullRequest<T>(
  call: ForgeCall,
  value: T,
  { url, number }: Partial<KnownPullRequest>,
): T {
  const isAddress = typeof url === "string" && /^https?:$/.test(URL.parse(url)?.protocol ?? "");
  if (!isAddress || !Number.isSafeInteger(number)) throw unreadable(call, value);
  return value;
}

/** @throws ForgeRefusal, which passes: the next attempt looks whether there is one */
export function requireList(call: ForgeCall, value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw unreadable(call, value);
  return value;
}

const unreadable = ({ forge }: ForgeCall, value: unknown) =>
  new ForgeRefusal(
    502,
    `${forge.api} did not answer with a pull request: ${serverWords(cutChars(JSON.stringify(value), MAX_SHOWN_CHARS))}`,
  );
