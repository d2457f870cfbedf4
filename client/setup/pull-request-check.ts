/** `--pull URL`: the pull request that a session takes over is asked for its branch before anything starts. */
import {
  parseForge,
  pullRequestAddress,
  tokenVariable,
  type ForgePlace,
  type PullRequestAddress,
} from "../../activities/config/git-settings.ts";
import { ForgeRefusal } from "../../activities/forge/calls.ts";
import type { PullRequestFacts } from "../../activities/forge/facts.ts";
import { adapterFor, atPresentName } from "../../activities/forge/forges.ts";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { CredentialUnavailable } from "../../activities/git/trouble.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { missing, notPossible, usageError } from "../console/errors.ts";
import { shellWord } from "../console/format.ts";
import { requireForgeToken } from "./repository-check.ts";

/** A forge that does not answer is reported within 10 s. Source: requirement 1.2. */
const CHECK_MS = 8_000;

/** The flags of a new session that a pull request decides. */
interface PullFlags {
  readonly repo?: string;
  readonly ref?: string;
  readonly branch?: string;
  readonly workspace?: string;
  readonly push?: "never" | "end" | "saves";
  readonly pr?: "none" | "draft" | "ready";
  readonly setup: boolean;
}

/** What the session is given of the pull request, and the flags that lead to its branch. */
export interface TakenOver<Flags extends PullFlags> {
  readonly flags: Flags;
  readonly kind: ForgePlace["kind"];
  readonly pull: { readonly url: string; readonly number: number };
}

/** Flags that say what the pull request says. */
const EXCLUDED = ["repo", "ref", "branch", "workspace", "pr"] as const;

/**
 * @throws ClientError: usage for an impossible request, or a branch that cannot be pushed to; impossible for a pull request that is
 * closed; missing if it cannot be read
 */
export async function takeOverPull<Flags extends PullFlags>(
  address: string,
  flags: Flags,
  environment: Environment = process.env,
): Promise<TakenOver<Flags>> {
  const pull = pullRequestAddress(address);
  if ("wrong" in pull) throw usageError(`--pull: ${pull.wrong}`);
  const other = EXCLUDED.find((name) => flags[name] !== undefined);
  if (other !== undefined)
    throw usageError(
      `--pull and --${other} exclude each other: the pull request says which branch of which repository it is.`,
    );
  if (flags.push === "never")
    throw usageError(
      "--pull takes a pull request over to push to it, and --push never does not.",
      `To read it only: longhaul review ${shellWord(pull.url)}`,
    );
  requireForgeToken(
    pull.repository,
    { setup: flags.setup, what: "Pull requests", without: "--pull" },
    environment,
  );
  const facts = await read(pull, environment);
  return {
    flags: {
      ...flags,
      repo: pull.repository,
      ref: `refs/heads/${requireBranch(pull, facts)}`,
      branch: facts.head.branch,
      push: flags.push ?? "end",
      pr: "ready",
    },
    kind: pull.kind,
    pull: { url: facts.url, number: pull.number },
  };
}

async function read(pull: PullRequestAddress, environment: Environment): Promise<PullRequestFacts> {
  const { repository, url, number, kind } = pull;
  const forge = parseForge(repository, kind);
  if (forge === undefined) throw usageError(`--pull: ${url} is on no forge that is known.`);
  const access = createGitAccess(environment);
  const signal = AbortSignal.timeout(CHECK_MS);
  const variable = tokenVariable(new URL(repository).hostname);
  try {
    const token = await access.tokenFor(repository, signal);
    return await atPresentName({ forge, token, signal }, undefined, (call) =>
      adapterFor(call).readPullRequest(call, number),
    );
  } catch (error) {
    if (signal.aborted)
      throw missing(
        `${forge.api} does not answer. Nothing was started.`,
        "Check the address and the network.",
      );
    if (!(error instanceof ForgeRefusal || error instanceof CredentialUnavailable)) throw error;
    throw missing(
      `The pull request ${url} cannot be read: ${error.message}. Nothing was started.`,
      `Check the address, and that ${variable} is set here, to a token that may read it.`,
    );
  }
}

/** @throws ClientError unless it is open, and from a branch of the repository itself */
function requireBranch({ url }: PullRequestAddress, { state, head }: PullRequestFacts): string {
  const { branch, isHere } = head;
  if (state !== "open") throw notPossible(`The pull request ${url} is ${state}: nothing is pushed to it.`);
  if (isHere !== true)
    throw usageError(
      isHere === undefined
        ? `The branch of ${url} is gone, or in a fork that is gone.`
        : `The branch of ${url} is in a fork, which is not this repository's: nothing can be pushed to it.`,
      `Read it with: longhaul review ${shellWord(url)}. To work on it, start on the fork itself: --repo FORK --ref ${branch} --branch ${branch} --push end`,
    );
  // In a setting, it would stand for the session's id.
  if (branch.includes("{id}"))
    throw usageError(`The branch ${branch} of ${url} has a name that Longhaul cannot push to.`);
  return branch;
}
