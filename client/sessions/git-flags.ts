/** The flags about a repository, merged over the configuration. Pure. */
import { type Command, Option } from "commander";
import { forgeOf, noForge } from "../../activities/config/forge-place.ts";
import {
  branchName,
  refName,
  repositoryPattern,
  repositoryAddress,
  type GitConfig,
  type SessionGit,
} from "../../activities/config/git-settings.ts";
import { usageError } from "../console/errors.ts";
import { given } from "../console/given.ts";
import { collect } from "./flag-values.ts";

export interface GitFlags {
  readonly repo?: string;
  readonly ref?: string;
  readonly branch?: string;
  readonly push?: GitConfig["push"];
  readonly pr?: GitConfig["pr"];
  readonly also?: readonly string[];
}

export function withGitFlags(command: Command): Command {
  return command
    .option("--repo <url>", "repository to work on, instead of --workspace: cloned by the worker")
    .option(
      "--ref <name>",
      "branch, tag, commit or other reference of it to start from (default: its default branch)",
    )
    .option("--branch <name>", "branch that the work is pushed to (default: longhaul/<id>)")
    .addOption(new Option("--push <when>", "push the work").choices(["never", "end", "saves"]))
    .addOption(
      new Option("--pr <kind>", "open a pull request at the end").choices(["none", "draft", "ready"]),
    )
    .option(
      "--also <repository>",
      "repository that this one may name and your credentials open, such as github.com/acme/*; may be repeated",
      collect,
    );
}

/** @returns undefined if no repository is named. @throws ClientError (usage) */
export function sessionGit(
  flags: GitFlags & { readonly workspace?: string },
  config: GitConfig,
): SessionGit | undefined {
  const { repo, ref, branch, push, pr, also } = flags;
  if (repo === undefined) {
    const without = Object.entries({ ref, branch, push, pr, also }).find(([, value]) => value !== undefined);
    if (without === undefined) return undefined;
    throw usageError(`--${without[0]} needs a repository, and none is named.`, "Name it: --repo URL");
  }
  if (flags.workspace !== undefined)
    throw usageError("--repo and --workspace exclude each other: a session starts from one of them.");
  const address = repositoryAddress(repo);
  if ("wrong" in address) throw usageError(address.wrong);
  for (const [name, value, schema] of [
    ["branch", branch, branchName],
    ["ref", ref, refName],
  ] as const) {
    if (value !== undefined && !schema.safeParse(value).success)
      throw usageError(`--${name}: ${JSON.stringify(value)} is not a valid Git name.`);
  }
  const unclear = also?.find((pattern) => !repositoryPattern.safeParse(pattern).success);
  if (unclear !== undefined)
    throw usageError(
      `--also: expected a host and a path such as github.com/acme/*, not ${JSON.stringify(unclear)}.`,
    );
  const wanted = pr ?? config.pr;
  if (wanted !== "none" && forgeOf(address.url, config.forge) === undefined)
    throw usageError(
      noForge(address.url),
      [
        ...(address.kind === "file"
          ? []
          : ["If it is on GitHub or GitLab, set git.forge to github or gitlab in your own file."]),
        "To deliver only the branch: --pr none --push end",
      ].join(" "),
    );
  const when = push ?? config.push;
  return {
    ...config,
    url: address.url,
    ...given({ ref, branch }),
    // A pull request needs a pushed branch.
    push: when === "never" && wanted !== "none" ? "end" : when,
    pr: wanted,
    also: [...config.also, ...(also ?? [])],
  };
}
