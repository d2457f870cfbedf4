/** The flags of a new session: those of `run` and `start`, about a repository, and about another person's container. */
import { type Command, Option } from "commander";
import {
  mayBeOnForge,
  noForge,
  branchName,
  refName,
  repositoryPattern,
  repositoryAddress,
  type GitConfig,
  type SessionGit,
} from "../../activities/config/git-settings.ts";
import { usageError } from "../console/errors.ts";
import { collect, checked, parseDeadline, positiveAmount, positiveInteger } from "./flag-values.ts";
import { type RunConfig, QUESTION_MODES, type QuestionMode } from "../../activities/config/agent-config.ts";
import {
  NETWORKS,
  setupSettingsSchema,
  type AttachedContainer,
} from "../../activities/config/sandbox-settings.ts";
import { followSchema } from "../../activities/config/follow-settings.ts";
import { prioritySchema, tenantSchema } from "../../activities/config/precedence.ts";
import type { SandboxFlags } from "../config/devcontainer.ts";
import type { AttachmentSource } from "./attachments.ts";
import type { OutputSchema } from "../../activities/config/output-schema.ts";

export interface RunFlags extends GitFlags, SandboxFlags, ContainerFlags {
  readonly model?: string;
  readonly workspace?: string;
  /** Lines as of `.gitignore`: what else of the workspace stays here. */
  readonly leaveOut?: readonly string[];
  readonly maxSteps?: number;
  readonly maxCost?: number;
  readonly deadline?: number;
  readonly config?: string;
  readonly image?: readonly AttachmentSource[];
  readonly file?: readonly AttachmentSource[];
  readonly id?: string;
  readonly json?: boolean;
  readonly devcontainer?: boolean;
  /** A compose file whose services start beside the sandbox. */
  readonly services?: string;
  /** Services of it that are left out. */
  readonly without?: readonly string[];
  readonly setup: boolean;
  readonly questions?: QuestionMode;
  readonly plan?: boolean;
  readonly priority?: number;
  readonly tenant?: string;
  /** Commands that decide whether the work is done. */
  readonly verify?: readonly string[];
  /** This many sessions try the task, and the best is delivered. */
  readonly attempts?: number;
  /** The first attempt that passes ends the others. */
  readonly first?: boolean;
  /** Address of the pull request that the session takes over. */
  readonly pull?: string;
  /** All of `--model`, for attempts. */
  readonly models?: readonly string[];
  /** A file's name; from the library, the schema itself. */
  readonly outputSchema?: string | OutputSchema;
}

/** Adds the flags of requirement 1.2. */
export function withRunFlags(command: Command): Command {
  command.on("option:model", (model: string) => {
    const before = (command.getOptionValue("models") ?? []) as readonly string[];
    command.setOptionValue("models", [...before, model]);
  });
  return withItemFlags(command)
    .option(
      "--attempts <n>",
      "let this many sessions try the task, and deliver the best by --verify; --model may be repeated",
      positiveInteger,
    )
    .option("--first", "with --attempts: the first that passes ends the others")
    .option("--max-cost <usd>", "stop when the session has cost this much", positiveAmount)
    .option("--pull <url>", "take over this pull request: work on its branch, and push to it")
    .option("--plan", "plan first: nothing is changed before you approve the plan")
    .option("--image <file>", "image or PDF that belongs to the task; may be repeated", collect)
    .option("--file <file>", "text file, image or PDF that belongs to the task; may be repeated", collect)
    .option("--container <name>", "work in this running container, as it is; it is never changed or removed")
    .option("--workspace-dir <dir>", "the folder of --container to work in (default: its own working folder)")
    .option("--devcontainer", "take image, set-up and variables from the project's devcontainer.json")
    .option("--services <file>", "start the services of this compose.yaml beside the sandbox")
    .option("--without <service>", "leave this service of the compose file out; may be repeated", collect)
    .option("--id <id>", "id of the session; the same id and task again attaches to it");
}

/** Flags that also apply to many sessions at once. */
export function withItemFlags(command: Command): Command {
  return withSettingFlags(command)
    .option("--workspace <dir>", "folder to work on: copied in as Git reads it, .gitignore respected")
    .option(
      "--leave-out <pattern>",
      "leave out what Git does not track and this matches, as a line of .gitignore; may be repeated",
      collect,
    );
}

/** Flags that also apply to a session without a folder. */
export function withSettingFlags(command: Command): Command {
  return withGitFlags(command)
    .option("--model <provider/model>", "model to ask, such as openai/gpt-6.1-sol")
    .option("--max-steps <n>", "stop after this many steps", positiveInteger)
    .option("--deadline <when>", "end within a time such as 90m or 8h, or at an ISO time", deadlineFromNow)
    .option(
      "--priority <1-5>",
      "1 goes first when there are too few workers (default: 3)",
      checked(prioritySchema, Number),
    )
    .option(
      "--tenant <name>",
      "whom the session works for: tenants take turns when there are too few workers",
      checked(tenantSchema),
    )
    .option(
      "--verify <command>",
      "run this in the sandbox when the agent says that it is done: it passes, or the agent goes on; may be repeated",
      collect,
    )
    .option("--output-schema <file>", "JSON Schema: the last answer is JSON that fits it, alone on stdout")
    .addOption(
      new Option(
        "--questions <mode>",
        "how questions are answered: ask people, take the model's own default, or deny them",
      ).choices(QUESTION_MODES),
    )
    .option("--config <file>", "configuration file (default: LONGHAUL_CONFIG or ./longhaul.yaml)")
    .addOption(
      new Option(
        "--network <network>",
        "what the sandbox can reach: bridge (the internet), listed (only listed names), none",
      ).choices(NETWORKS),
    )
    .option(
      "--allow-domain <name>",
      "with --network listed: a host name, *.name, or a group; may be repeated",
      collect,
    )
    .option(
      "--key <name>",
      "a key of the worker's that the sandbox can use and not read; may be repeated",
      collect,
    )
    .option("--no-setup", "start no services or worker: they run elsewhere (or LONGHAUL_NO_SETUP=1)");
}

/** Reads `--deadline`. @throws InvalidArgumentError */
export const deadlineFromNow = (text: string): number => parseDeadline(text, Date.now());

/** Help text of a flag of `run` and `watch`. */
export const EXIT_ON_QUESTION =
  "exit with code 7 when the session waits for a person, who must answer; it keeps waiting";

export interface GitFlags {
  readonly repo?: string;
  readonly ref?: string;
  readonly branch?: string;
  readonly push?: GitConfig["push"];
  readonly pr?: GitConfig["pr"];
  readonly also?: readonly string[];
  readonly follow?: boolean;
}

function withGitFlags(command: Command): Command {
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
      "--follow",
      "stay with the pull request until it is merged: failed checks, reviews, conflicts (opens one unless --pr says how)",
    )
    .option(
      "--also <repository>",
      "repository that this one may name and your credentials open, such as github.com/acme/*; may be repeated",
      collect,
    )
    .option(
      "--no-warm",
      "wait for no base of it: begin on one that is there, else with a checkout of its own",
    );
}

/** @returns undefined if no repository is named. @throws ClientError (usage) */
export function sessionGit(
  flags: GitFlags & { readonly workspace?: string; readonly warm?: boolean },
  config: GitConfig,
): SessionGit | undefined {
  const { repo, ref, branch, push, pr, also, follow } = flags;
  if (repo === undefined) {
    const waitsForNone = flags.warm === false ? true : undefined;
    const without = Object.entries({ ref, branch, push, pr, also, follow, "no-warm": waitsForNone }).find(
      ([, value]) => value !== undefined,
    );
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
  const follows = follow ?? config.follow?.on ?? false;
  const prKind = pr ?? (follows && config.pr === "none" ? "ready" : config.pr);
  if (follow === true && prKind === "none")
    throw usageError("--follow needs a pull request, and --pr none opens none.", "Leave out one of them.");
  if (prKind !== "none" && !mayBeOnForge(address.url))
    throw usageError(noForge(address.url), "To deliver only the branch: --pr none --push end");
  const when = push ?? config.push;
  return {
    ...config,
    url: address.url,
    ref,
    branch: branch ?? config.branch,
    // A pull request needs a pushed branch.
    push: when === "never" && prKind !== "none" ? "end" : when,
    pr: prKind,
    follow:
      follows || config.follow !== undefined
        ? followSchema.parse({ ...config.follow, on: follows })
        : undefined,
    also: [...config.also, ...(also ?? [])],
  };
}

export interface ContainerFlags {
  /** Another person's running container. */
  readonly container?: string;
  readonly workspaceDir?: string;
}

/** Flags that would change a container, or copy files into it. */
const EXCLUDED = [
  "workspace",
  "repo",
  "plan",
  "devcontainer",
  "services",
  "network",
  "allowDomain",
  "key",
] as const;

/** @throws ClientError (usage, missing) */
export async function containerFor(
  flags: ContainerFlags & { readonly [Name in (typeof EXCLUDED)[number]]?: unknown },
): Promise<AttachedContainer | undefined> {
  const { container, workspaceDir } = flags;
  if (container === undefined) {
    if (workspaceDir !== undefined)
      throw usageError("--workspace-dir names a folder of --container, and there is none.");
    return undefined;
  }
  const other = EXCLUDED.find((name) => flags[name] !== undefined && flags[name] !== false);
  if (other !== undefined)
    throw usageError(
      `--container cannot be combined with --${other === "allowDomain" ? "allow-domain" : other}: the container is used as it is, with its own files and network.`,
    );
  if (workspaceDir !== undefined && !/^\/./.test(workspaceDir))
    throw usageError("--workspace-dir is an absolute folder of the container, below /.");
  const { checkContainer } = await import("../setup/local-containers.ts");
  return checkContainer(container, workspaceDir);
}

/** The settings of a session in a container: no set-up, and no delegates, which would need a copy. */
export function inContainer(config: RunConfig, container: AttachedContainer | undefined): RunConfig {
  if (container === undefined) return config;
  const { sandbox, delegate } = config;
  if ((sandbox.keys ?? []).length > 0)
    throw usageError(
      "sandbox.keys cannot be combined with --container: the container is used as it is, without a proxy that adds keys.",
    );
  return {
    ...config,
    sandbox: { ...sandbox, setup: setupSettingsSchema.parse([]), container },
    ...(delegate === undefined ? {} : { delegate: { ...delegate, enabled: false } }),
  };
}
