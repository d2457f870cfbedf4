/** From a pull request's address to the start of a session that reviews it: read-only, and nothing is pushed. */
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { pullRequestAddress, type PullRequestAddress } from "../../activities/config/git-settings.ts";
import { setupSettingsSchema } from "../../activities/config/sandbox-settings.ts";
import { REVIEW_ANSWER_SCHEMA } from "../../activities/contract/review.ts";
import type { ResolvedConfig } from "../config/config.ts";
import { usageError } from "../console/errors.ts";
import { prepareStart } from "../sessions/prepare-start.ts";
import type { RunFlags } from "../sessions/run-flags.ts";
import type { Start } from "../sessions/start-session.ts";

export interface ReviewFlags extends Pick<
  RunFlags,
  "model" | "maxSteps" | "maxCost" | "deadline" | "config" | "id" | "network" | "allowDomain" | "setup"
> {
  readonly post?: boolean;
  readonly focus?: string;
}

/** @throws ClientError */
export async function prepareReview(
  address: string,
  flags: ReviewFlags,
  note: (text: string) => void,
): Promise<{ readonly start: Start; readonly config: ResolvedConfig }> {
  const pull = requireAddress(address);
  const { post = false, focus, ...own } = flags;
  const task = reviewTask(pull.url, focus);
  const { start, config } = await prepareStart(
    [task],
    { ...own, repo: pull.repository, ref: pull.ref, push: "never", pr: "none", follow: false },
    note,
  );
  if (post) await requireToken(pull, flags);
  const { mayApprove } = config.settings.review;
  const reviews = { url: pull.url, number: pull.number, post, mayApprove };
  const run = { ...reading(start.config, flags.network !== undefined), reviews };
  return {
    start: { ...start, config: { ...run, repository: repositoryOf(run, pull) } },
    config,
  };
}

/** @throws ClientError (usage) */
function requireAddress(text: string): PullRequestAddress {
  const pull = pullRequestAddress(text);
  if ("wrong" in pull) throw usageError(pull.wrong);
  return pull;
}

async function requireToken({ repository }: PullRequestAddress, flags: ReviewFlags): Promise<void> {
  const { requireForgeToken } = await import("../setup/repository-check.ts");
  requireForgeToken(repository, { ...flags, what: "Reviews", without: "--post" });
}

function reviewTask(url: string, focus: string | undefined): string {
  const about = focus?.trim() ?? "";
  return about === ""
    ? `Review the pull request ${url}.`
    : `Review the pull request ${url}. Focus on: ${about}`;
}

/**
 * Strangers may have written the code: it gets no keys and no services, no set-up runs by itself, and it reaches only what is listed,
 * unless the person says otherwise.
 */
function reading(run: RunConfig, isNetworkChosen: boolean): RunConfig {
  const { verify: _verify, delegate, sandbox, ...rest } = run;
  const { services: _services, keys: _keys, network, ...box } = sandbox;
  return {
    ...rest,
    ...(delegate === undefined ? {} : { delegate: { ...delegate, enabled: false } }),
    sandbox: {
      ...box,
      network: network === "bridge" && !isNetworkChosen ? "listed" : network,
      setup: setupSettingsSchema.parse([]),
    },
    outputSchema: REVIEW_ANSWER_SCHEMA,
  };
}

/** The whole history: without it, git does not know what the change is. The address says the forge. */
function repositoryOf({ repository }: RunConfig, { kind }: PullRequestAddress): RunConfig["repository"] {
  return repository && { ...repository, depth: 0, forge: kind };
}
