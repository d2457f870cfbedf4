/** The common flags of `run` and `start`, and their resolution before anything starts. */
import { resolve } from "node:path";
import { Option, type Command } from "commander";
import { z } from "zod";
import { issueTexts } from "../../activities/config/issue-text.ts";
import { prioritySchema, tenantSchema } from "../../activities/config/precedence.ts";
import { resolveConfig, type ConfigFlags, type ResolvedConfig } from "../config/config.ts";
import { readDevcontainer, type Devcontainer } from "../config/devcontainer.ts";
import { usageError } from "../console/errors.ts";
import { NETWORKS, type SandboxFlags } from "../config/sandbox-flags.ts";
import { readOutputSchema } from "./read-output-schema.ts";
import { containerFor, inContainer, type ContainerFlags } from "./container-flags.ts";
import { checked, collect, parseDeadline, positiveAmount, positiveInteger } from "./flag-values.ts";
import { forProject } from "../registries/session-registries.ts";
import type { SessionGit } from "../../activities/config/git-settings.ts";
import { sessionGit, withGitFlags, type GitFlags } from "./git-flags.ts";
import { notShown, readAttachments, requireTextRoom, type AttachmentSource } from "./attachments.ts";
import { QUESTION_MODES, type QuestionMode } from "../../activities/config/question-settings.ts";
import type { OutputSchema } from "../../activities/config/output-schema.ts";
import { parseSessionId } from "./session-id.ts";
import type { Start } from "./start-session.ts";
import { processStdin, readTask, type Stdin } from "./task-input.ts";
import { projectFiles } from "../../activities/config/project-files.ts";
import { withInstructionsAbove } from "../workspace/instructions-above.ts";
import { readFolder } from "../workspace/workspace-folder.ts";
import { given } from "../console/given.ts";

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
  readonly setup: boolean;
  readonly questions?: QuestionMode;
  readonly plan?: boolean;
  readonly priority?: number;
  readonly tenant?: string;
  /** A file's name; from the library, the schema itself. */
  readonly outputSchema?: string | OutputSchema;
}

/** Adds the flags of requirement 1.2. */
export function withRunFlags(command: Command): Command {
  return withItemFlags(command)
    .option("--max-cost <usd>", "stop when the session has cost this much", positiveAmount)
    .option("--plan", "plan first: nothing is changed before you approve the plan")
    .option("--image <file>", "image or PDF that belongs to the task; may be repeated", collect)
    .option("--file <file>", "text file, image or PDF that belongs to the task; may be repeated", collect)
    .option("--container <name>", "work in this running container, as it is; it is never changed or removed")
    .option("--workspace-dir <dir>", "the folder of --container to work in (default: its own working folder)")
    .option("--devcontainer", "take image, set-up and variables from the project's devcontainer.json")
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
    .option("--deadline <when>", "end within a time such as 90m or 8h, or at an ISO time", (text) =>
      parseDeadline(text, Date.now()),
    )
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
    .option("--no-setup", "start no services or worker: they run elsewhere (or LONGHAUL_NO_SETUP=1)");
}

/** Caches what many starts at once would check repeatedly. */
export interface Sources {
  readonly stdin?: Stdin;
  readonly readFolder?: typeof readFolder;
  readonly checkRepository?: (git: SessionGit, flags: RunFlags) => Promise<void>;
}

/** Finds every usage error before anything starts. @throws ClientError */
export async function prepareStart(
  words: readonly string[],
  flags: RunFlags,
  note: (text: string) => void,
  {
    stdin = processStdin(),
    readFolder: read = readFolder,
    checkRepository: check = checkRemote,
  }: Sources = {},
): Promise<{ readonly start: Start; readonly config: ResolvedConfig }> {
  const id = flags.id === undefined ? undefined : parseSessionId(flags.id);
  const fromDevcontainer = await devcontainerFor(flags);
  const config = await resolveAsking({ ...flags, fromDevcontainer });
  const container = await containerFor(flags);
  const outputSchema = await readOutputSchema(flags.outputSchema);
  const git = sessionGit(flags, config.settings.git);
  if (git !== undefined && flags.repo !== undefined && git.url !== flags.repo)
    note(`The user's name in --repo is left out: the repository is ${git.url}.\n`);
  for (const line of [...config.notes, ...(fromDevcontainer?.notes ?? [])]) note(`${line}\n`);
  if (config.rehearsal && flags.setup !== false) await mentionLocalServers(note);
  const attachments = await readAttachments({ images: flags.image, files: flags.file });
  const folder = await readProject(flags, config, read);
  for (const line of folder?.notes ?? []) note(`${line}\n`);
  for (const line of notShown(attachments, config.run)) note(`${line}\n`);
  const task = await readTask(words, stdin, note);
  requireTextRoom(task, attachments);
  const run = {
    ...inContainer(forProject(config.run, projectName(git, flags.workspace)), container),
    ...(flags.plan === true ? { plan: true } : {}),
    ...given({ outputSchema }),
    ...precedenceFlags(flags),
    ...given({ repository: git }),
  };
  if (git !== undefined) await check(git, flags);
  return { start: { id, task, config: run, attachments, folder }, config };
}

/** Model servers of this machine are mentioned before the rehearsal plays, but never used unasked. */
async function mentionLocalServers(note: (text: string) => void): Promise<void> {
  const { findLocalServers, serverNote } = await import("../setup/model-servers.ts");
  for (const server of await findLocalServers()) note(`${serverNote(server)}\n`);
}

/** For programs, too, without a command line's checks. @throws ClientError (usage) */
function precedenceFlags({ priority, tenant }: RunFlags) {
  const schema = z.object({ priority: prioritySchema.optional(), tenant: tenantSchema.optional() });
  const result = schema.safeParse({ priority, tenant });
  if (!result.success) throw usageError(`${issueTexts(result.error, schema).join("; ")}.`);
  return given({ priority, tenant });
}

/** @throws ClientError */
async function devcontainerFor(flags: RunFlags): Promise<Devcontainer | undefined> {
  const { devcontainer, workspace, repo, ref } = flags;
  if (devcontainer !== true) return undefined;
  if (workspace !== undefined) return readDevcontainer(resolve(workspace));
  if (repo === undefined)
    throw usageError(
      "--devcontainer reads the devcontainer.json of a project, and none is named.",
      "Add --workspace DIR or --repo URL.",
    );
  const { devcontainerOfRepository } = await import("../setup/repository-check.ts");
  return devcontainerOfRepository(repo, ref);
}

/** @throws ClientError if the repository denies access, or is unusable */
export async function checkRemote(git: SessionGit, flags: RunFlags): Promise<void> {
  const { checkRepository } = await import("../setup/repository-check.ts");
  await checkRepository(git, flags);
}

/** The project that the set-up's cache belongs to: a repository's address or a folder; empty if there is neither. */
function projectName(git: SessionGit | undefined, workspace: string | undefined): string {
  return git?.url ?? (workspace === undefined ? "" : resolve(workspace));
}

async function readProject(
  { workspace, leaveOut = [] }: RunFlags,
  { run }: ResolvedConfig,
  read: typeof readFolder,
) {
  if (workspace === undefined) {
    if (leaveOut.length > 0) throw usageError("--leave-out is about --workspace, and there is none.");
    return undefined;
  }
  const folder = await read(workspace, leaveOut);
  const { instructions, skills } = projectFiles(folder.files, run);
  const all = withInstructionsAbove(workspace, instructions, run);
  const unread = skills.flatMap(({ path, unread: why }) => (why === undefined ? [] : [`${path}: ${why}.`]));
  return { ...folder, notes: [...folder.notes, ...unread], skills, instructions: all, path: workspace };
}

/** The configuration, with windows from servers for models that are in no table. @throws ClientError */
export async function resolveAsking(flags: ConfigFlags): Promise<ResolvedConfig> {
  const config = resolveConfig(flags);
  if (config.unlisted.length === 0) return config;
  const { askWindows } = await import("../setup/model-check.ts");
  const served = await askWindows(config.unlisted);
  return Object.keys(served).length === 0 ? config : resolveConfig({ ...flags, served });
}

/** Help text of a flag of `run` and `watch`. */
export const EXIT_ON_QUESTION = "exit with code 7 when the session asks a person; the session keeps waiting";

/** Printed first if no model was named and there is no key. */
export const REHEARSAL_NOTE =
  "No model key (OPENAI_API_KEY) is set: this is a REHEARSAL. A written script plays the model and builds a flashcard app;" +
  " its tools really run.";
