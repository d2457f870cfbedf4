/** A new session: stored first, then started, so that its workflow finds everything it needs. */
import type { Client } from "@temporalio/client";
import { WorkflowExecutionAlreadyStartedError } from "@temporalio/common";
import { toPrecedence } from "../../activities/config/precedence.ts";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { cleanDeep, inertMarkdown } from "../../activities/text/clean.ts";
import type { UserPart } from "../../activities/contract/message.ts";
import type { OwnerMemo } from "../../activities/contract/run-memo.ts";
import { readInstallation } from "../../activities/store/installation.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { saveBlobFor } from "../../activities/store/blobs.ts";
import { migrateStore } from "../../activities/store/db.ts";
import { findSessionRow, type SessionRow } from "../../activities/store/reading.ts";
import { createSession, endAbandoned, type NewSession } from "../../activities/store/sessions.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import type { CodingAgentInput } from "../../workflows/run-input.ts";
import { clientSanitizer } from "../config/config.ts";
import type { Services } from "../connect/connection.ts";
import { settled } from "../connect/missing-service.ts";
import { mayNotMigrate } from "../../temporal/postgres-probe.ts";
import { describedRun } from "../../temporal/runs.ts";
import { isOthersRun } from "../connect/describe-run.ts";
import { findServices, idsOnly } from "../setup/services.ts";
import { notPossible, type ClientError } from "../console/errors.ts";
import { attachedText, cleanAttachment, type Attachment } from "./attachments.ts";
import { createSessionId } from "./session-id.ts";
import { isMissingTable } from "../lookup/unless-table-missing.ts";
import type { ProjectFiles } from "../../activities/config/system-prompt.ts";
import type { FolderContent } from "../workspace/workspace-folder.ts";
import { present, shellWord } from "../console/format.ts";
import { cutChars } from "../../activities/text/cut.ts";

export interface Start {
  /** An id of the person's choice; starting the same task under it again attaches to it. */
  readonly id: string | undefined;
  readonly task: string;
  readonly config: RunConfig;
  readonly attachments: readonly Attachment[];
  readonly folder: (FolderContent & ProjectFiles & { readonly path: string }) | undefined;
  /** Attaches to an ended session of the same id and task, for its outcome. */
  readonly acceptEnded?: boolean;
}

export interface Started {
  readonly id: string;
  /** True if the session existed already. */
  readonly attached: boolean;
}

/** @throws ClientError (impossible) if another task uses the id, or its session has ended */
export async function startSession(services: Services, request: Start): Promise<Started> {
  const start = cleaned(request);
  const client = await services.temporal.client();
  const id = await store(services, start);
  const attached = id === undefined;
  const sessionId = id ?? start.id ?? "";
  const over = attached && (await isOver(services, client, start));
  if (!over && !(await startWorkflow(services, client, { id: sessionId, start, attached })))
    throw await otherWorkflow(services, sessionId, attached);
  return { id: sessionId, attached };
}

function cleaned({ id, task, config, attachments, folder, acceptEnded = false }: Start): Start {
  const { clean } = clientSanitizer();
  const instructions = folder?.instructions;
  return {
    id,
    acceptEnded,
    task: clean(task),
    config: cleanDeep(config, clean) as RunConfig,
    attachments: attachments.map((file) => cleanAttachment(file, clean)),
    folder: folder && {
      ...folder,
      path: clean(folder.path),
      instructions: instructions === undefined ? undefined : clean(instructions),
      skills: cleanDeep(folder.skills, clean) as typeof folder.skills,
    },
  };
}

/** @returns undefined if the chosen id is used already */
async function store(services: Services, start: Start): Promise<string | undefined> {
  const { namespace } = (await services.temporal.client()).options;
  for (;;) {
    const id = start.id ?? createSessionId();
    const session = await storedParts(services, id, start);
    if (await createSession(services.store, { id, namespace, ...session })) return id;
    if (start.id !== undefined) return undefined;
  }
}

/** The cleaned settings of a session that begins later, under this id; its attachments are stored for it. */
export function storedStart(services: Services, id: string, start: Start): Promise<Omit<NewSession, "id">> {
  return storedParts(services, id, cleaned(start));
}

async function storedParts(services: Services, id: string, start: Start): Promise<Omit<NewSession, "id">> {
  const { db } = services.store;
  await withTables(services, () => findSessionRow(db, ""));
  const parts: UserPart[] = [];
  for (const file of start.attachments) {
    const text = attachedText(file);
    parts.push(text === undefined ? await saveBlobFor(db, id, file) : { type: "text", text });
  }
  const workspace = start.folder && (await packWorkspace(start.folder.files));
  return {
    task: start.task,
    parts,
    config: start.config,
    owner: services.user,
    instructions: start.folder?.instructions,
    skills: start.folder?.skills,
    workspace,
  };
}

/** A new database has no tables yet: the worker or we create them, whichever is first. */
async function withTables<T>(services: Services, query: () => Promise<T>): Promise<T> {
  try {
    return await query();
  } catch (error) {
    if (!isMissingTable(error)) throw error;
    await migrateStore(services.store).catch((refused: unknown) => {
      throw mayNotMigrate(refused, findServices().databaseUrl) ?? refused;
    });
    return query();
  }
}

/**
 * Whether the session that has this id already is over.
 * @throws ClientError (impossible) if it has another task, or is over and that is not accepted
 */
async function isOver(services: Services, client: Client, start: Start): Promise<boolean> {
  const id = start.id ?? "";
  const row = await findSessionRow(services.store.db, id);
  // The id is used but not visible: its session belongs to another person.
  if (row === undefined)
    throw notPossible(`The id ${id} belongs to another person's session.`, "Choose another --id.");
  if (row.task !== start.task) {
    throw notPossible(
      `The id ${id} belongs to a session with another task.`,
      `Choose another --id, or guide that one: longhaul say ${shellWord(id)} "…"`,
    );
  }
  const over = sessionHasEnded(row) || (await isClosed(client, id));
  if (over && start.acceptEnded !== true) {
    throw notPossible(
      `The session ${id} has this task and has ended (${row.status}).`,
      `Resume it with: longhaul say ${shellWord(id)} "go on"`,
    );
  }
  return over;
}

export const sessionHasEnded = (row: Pick<SessionRow, "status">) =>
  row.status !== "active" && row.status !== "waiting";

async function isClosed(client: Client, id: string): Promise<boolean> {
  // If the client ended after storing the session but before starting its workflow, the workflow is started now.
  const run = await describedRun(client, id);
  return run !== undefined && run.status !== "RUNNING";
}

/**
 * @param attached the session existed before: then a batch may have started it
 * @returns false if Temporal runs something else under this id
 */
async function startWorkflow(
  services: Services,
  client: Client,
  { id, start, attached }: { readonly id: string; readonly start: Start; readonly attached: boolean },
): Promise<boolean> {
  // Another client may have been faster: its run is like ours. One that was started without a client has no model in its memo.
  const isOurs = async () => {
    const run = await describedRun(client, id);
    const { type, memo } = run?.raw.workflowExecutionInfo ?? {};
    if (run === undefined || (await isOthersRun(services, id, run))) return undefined;
    return type?.name === WORKFLOW_TYPE && (attached || memo?.fields?.["model"] !== undefined);
  };
  return settled({
    make: async () => {
      try {
        await client.workflow.start(WORKFLOW_TYPE, {
          ...workflowOptions(await readStarter(services), id, start),
          args: [{} satisfies CodingAgentInput],
        });
        return true;
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
        return (await isOurs()) === true;
      }
    },
    find: isOurs,
    what: `it started the session ${id}`,
    again: `See it with: longhaul status ${shellWord(id)}. The same task under this id starts it if it has not begun: longhaul run --id ${shellWord(id)} …`,
  });
}

/** Ends the row that was made for nothing, unless it existed before. */
async function otherWorkflow({ store }: Services, id: string, attached: boolean): Promise<ClientError> {
  const message = `Temporal has another workflow, or another installation's session, running under the id ${id}, which was left as it is.`;
  if (!attached) await endAbandoned(store.db, id, undefined, { status: "failed", message });
  return notPossible(message, "Choose another --id, or wait until that one has ended.");
}

/** Who starts a run, and where. */
export interface Starter {
  readonly taskQueue: string;
  /** Its id. */
  readonly installation: string;
}

export const readStarter = async ({
  store: { db },
  taskQueue,
}: Pick<Services, "store" | "taskQueue">): Promise<Starter> => ({
  taskQueue,
  installation: await readInstallation(db),
});

/** How a session's workflow is started, the first time and when it is resumed. */
export function workflowOptions(
  { taskQueue, installation }: Starter,
  id: string,
  session: { readonly task: string; readonly config: RunConfig; readonly folder?: Start["folder"] },
) {
  const { config } = session;
  const precedence = toPrecedence(config);
  const task = idsOnly() ? `session ${id}` : session.task;
  return {
    workflowId: id,
    taskQueue,
    staticSummary: staticSummary(task),
    staticDetails: taskDetails({
      id,
      task,
      model: config.model,
      maxSteps: config.limits.maxSteps,
      contextWindow: config.contextWindow,
      workspace: session.folder?.path,
    }),
    memo: {
      task: taskSummary(task),
      model: config.model,
      image: config.sandbox.image,
      installation,
    } satisfies OwnerMemo,
    priority: precedence,
  };
}

/** Bytes the server keeps of a summary. Temporal's documents disagree: 200 or 400. */
const SUMMARY_BYTES = 180;
const SUMMARY_CHARS = 120;
const ELLIPSIS_BYTES = 3;
/** Bytes of the details: the server keeps 20,000, with room for the frame. */
const DETAIL_BYTES = 16_000;

/** The task on one line: at most 120 characters and 180 bytes. */
export function taskSummary(task: string): string {
  const flat = task
    .replace(/\p{Cc}+/gu, " ")
    .replace(/\s+/g, " ")
    .trim();
  const points = Array.from(flat);
  const short = points.length > SUMMARY_CHARS ? `${points.slice(0, SUMMARY_CHARS - 1).join("")}…` : flat;
  return cutToBytes(short, SUMMARY_BYTES);
}

export interface DetailFacts {
  readonly id: string;
  readonly task: string;
  readonly model: string;
  readonly maxSteps: number;
  readonly contextWindow: number;
  readonly workspace: string | undefined;
}

/** Markdown with the task as plain text: no image, no link, no code. */
export function taskDetails(facts: DetailFacts): string {
  const rows = present(
    `session \`${facts.id}\``,
    `model \`${facts.model.replaceAll("`", "")}\``,
    `at most ${facts.maxSteps} steps`,
    `window ${facts.contextWindow} tokens`,
    facts.workspace !== undefined && `files put in from \`${facts.workspace.replaceAll("`", "")}\``,
  );
  const text = `${rows.join(" · ")}\n\n${quoted(cutToBytes(facts.task, DETAIL_BYTES / 2))}`;
  return cutChars(text, DETAIL_BYTES);
}

/** The task as the Web UI's summary of a run, which is rendered as Markdown: the same text, escaped. */
export function staticSummary(task: string): string {
  const text = taskSummary(task);
  const disarmed = inertMarkdown(text);
  if (Buffer.byteLength(disarmed) <= SUMMARY_BYTES) return disarmed;
  // A cut between a character and its escape would activate the next one: whole characters are dropped instead.
  let shortened = "";
  for (const point of text) {
    const next = shortened + inertMarkdown(point);
    if (Buffer.byteLength(next) > SUMMARY_BYTES - ELLIPSIS_BYTES) break;
    shortened = next;
  }
  return `${shortened}…`;
}

function quoted(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => `> ${inertMarkdown(line)}  `)
    .join("\n");
}

/** The text's beginning in at most `maxBytes` of UTF-8, cut at a code point. */
export function cutToBytes(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  let usedBytes = 3;
  let shortened = "";
  for (const point of text) {
    usedBytes += Buffer.byteLength(point);
    if (usedBytes > maxBytes) break;
    shortened += point;
  }
  return `${shortened}…`;
}
