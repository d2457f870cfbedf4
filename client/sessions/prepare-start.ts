/** From a task and flags to a session's start: every usage error is found before anything starts. */
import { isFresh } from "../../activities/config/verify-settings.ts";
import { resolve } from "node:path";
import { z } from "zod";
import { issueTexts } from "../../activities/config/issue-text.ts";
import { prioritySchema, tenantSchema } from "../../activities/config/precedence.ts";
import { resolveConfig, type ConfigFlags, type ResolvedConfig } from "../config/config.ts";
import { type ComposedServices, readCompose } from "../config/compose.ts";
import { readDevcontainer, type Devcontainer } from "../config/devcontainer.ts";
import { usageError, unreadable } from "../console/errors.ts";
import { containerFor, inContainer, sessionGit, type RunFlags } from "./run-flags.ts";
import { forProject } from "../registries/session-registries.ts";
import type { SessionGit } from "../../activities/config/git-settings.ts";
import { notShown, readAttachments, requireTextRoom } from "./attachments.ts";
import { type OutputSchema, schemaTrouble } from "../../activities/config/output-schema.ts";
import { parseSessionId } from "./session-id.ts";
import type { Start } from "./start-session.ts";
import { processStdin, readTask, type Stdin } from "./task-input.ts";
import { projectFiles } from "../../activities/config/system-prompt.ts";
import { withInstructionsAbove, readFolder } from "../workspace/workspace-folder.ts";
import { definedFields } from "../console/format.ts";
import { readBoundedText } from "../console/read-bounded-text.ts";
import { reasonOf } from "../../activities/contract/errors.ts";

/** Caches what many starts at once would check repeatedly. */
export interface Sources {
  readonly stdin?: Stdin;
  readonly readFolder?: typeof readFolder;
  readonly checkRepository?: (git: SessionGit, flags: RunFlags) => Promise<void>;
}

/** Finds every usage error before anything starts. @throws ClientError */
export async function prepareStart(
  taskWords: readonly string[],
  runFlags: RunFlags,
  note: (text: string) => void,
  {
    stdin = processStdin(),
    readFolder: read = readFolder,
    checkRepository: check = checkRemote,
  }: Sources = {},
): Promise<{ readonly start: Start; readonly config: ResolvedConfig }> {
  const takeover = await pullFor(runFlags);
  const { flags } = takeover;
  const id = flags.id === undefined ? undefined : parseSessionId(flags.id);
  const fromDevcontainer = await devcontainerFor(flags);
  const fromCompose = composeFor(flags);
  const config = await resolveAsking({ ...flags, fromDevcontainer, fromCompose });
  const container = await containerFor(flags);
  const outputSchema = await readOutputSchema(flags.outputSchema);
  const git = takeover.on(sessionGit(flags, config.settings.git));
  if (git !== undefined && flags.repo !== undefined && git.url !== flags.repo)
    note(`The user's name in --repo is left out: the repository is ${git.url}.\n`);
  for (const line of [config, fromDevcontainer, fromCompose].flatMap((from) => from?.notes ?? []))
    note(`${line}\n`);
  if (config.rehearsal && flags.setup !== false) await mentionLocalServers(note);
  const attachments = await readAttachments({ images: flags.image, files: flags.file });
  const folder = await readProject(flags, config, read);
  for (const line of folder?.notes ?? []) note(`${line}\n`);
  for (const line of notShown(attachments, config.run)) note(`${line}\n`);
  const task = await readTask(taskWords, stdin, note);
  requireTextRoom(task, attachments);
  const run = {
    ...inContainer(forProject(config.run, projectName(git, flags.workspace)), container),
    ...(flags.plan === true ? { plan: true } : {}),
    ...definedFields({ outputSchema, ...precedenceFlags(flags), repository: git }),
  };
  if (git !== undefined) await check(git, flags);
  if (git === undefined && (run.verify?.protect.length ?? 0) > 0)
    throw usageError(
      "verify.protect is about a repository's files, which are compared with where the session began, and there is none.",
      "Add --repo URL, or leave verify.protect out.",
    );
  if (container !== undefined && run.verify !== undefined && isFresh(run.verify))
    throw usageError(
      "verify.where: fresh (and onProtected: restore) need a new sandbox, and another person's container cannot be made anew.",
      "Leave --container out, or verify in it with where: sandbox.",
    );
  return { start: { id, task, config: run, attachments, folder }, config };
}

interface Taken {
  readonly flags: RunFlags;
  /** The same repository, with the pull request that the session takes over. */
  readonly on: (git: SessionGit | undefined) => SessionGit | undefined;
}

/** @throws ClientError */
async function pullFor(runFlags: RunFlags): Promise<Taken> {
  if (runFlags.pull === undefined) return { flags: runFlags, on: (git) => git };
  const { takeOverPull } = await import("../setup/pull-request-check.ts");
  const { flags, kind, pull } = await takeOverPull(runFlags.pull, runFlags);
  return { flags, on: (git) => git && { ...git, forge: kind, pull } };
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
  return { priority, tenant };
}

/** @throws ClientError (usage) */
function composeFor({ services, without, workspace }: RunFlags): ComposedServices | undefined {
  if (services !== undefined) return readCompose({ path: services, workspace, without });
  if (without !== undefined)
    throw usageError("--without leaves a service of --services out, and there is none.");
  return undefined;
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

/** Printed first if no model was named and there is no key. */
export const REHEARSAL_NOTE =
  "No model key (OPENAI_API_KEY) is set: this is a REHEARSAL. A written script plays the model and builds a flashcard app;" +
  " its tools really run.";

/** @param schemaOrFile a file's name, or the schema itself. @throws ClientError (usage) */
export async function readOutputSchema(
  schemaOrFile: string | OutputSchema | undefined,
): Promise<OutputSchema | undefined> {
  if (schemaOrFile === undefined) return undefined;
  const schema = typeof schemaOrFile === "string" ? readSchemaFile(schemaOrFile) : schemaOrFile;
  const trouble = await schemaTrouble(schema);
  if (trouble === undefined) return schema;
  throw usageError(
    `${nameOf(schemaOrFile)} is not a JSON Schema that answers can be checked against: ${trouble}.`,
    "Use JSON Schema 2020-12, 2019-09, draft 7 or draft 6, with references only inside the document.",
  );
}

function readSchemaFile(path: string): OutputSchema {
  let text: string;
  try {
    text = readBoundedText(path, { pipes: true });
  } catch (error) {
    throw unreadable(`The output schema ${path}`, error);
  }
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch (error) {
    throw usageError(`The output schema ${path} is not JSON: ${reasonOf(error)}.`);
  }
  if (typeof schema === "object" && schema !== null && !Array.isArray(schema)) return schema as OutputSchema;
  throw usageError(`The output schema ${path} is not a JSON object.`);
}

const nameOf = (schemaOrFile: string | OutputSchema): string =>
  typeof schemaOrFile === "string" ? `The output schema ${schemaOrFile}` : "The output schema";
