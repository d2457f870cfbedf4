/** Messages to a session: sent, told to their sender, and taken back. */
import { randomUUID } from "node:crypto";
import { type Client, WithStartWorkflowOperation, WorkflowUpdateFailedError } from "@temporalio/client";
import { toGuidanceItems, LONG_TEXT_NAME, senderOf } from "../../activities/contract/guidance.ts";
import type { UserPart } from "../../activities/contract/message.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { saveBlobFor } from "../../activities/store/blobs.ts";
import { countWaiting, dropGuidance, enterGuidance, knownGuidance } from "../../activities/store/guidance.ts";
import { readFigures, type SessionRow } from "../../activities/store/reading.ts";
import {
  guidanceSignal,
  sendGuidanceUpdate,
  WORKFLOW_TYPE,
  type GuidanceMessage,
  type QueuedReply,
  withdrawMessageUpdate,
} from "../../workflows/messages.ts";
import type { CodingAgentInput } from "../../workflows/run-input.ts";
import { clientSanitizer } from "../config/config.ts";
import { acceptedGuidance } from "../../temporal/session-runs.ts";
import { describedRun, readHistory } from "../../temporal/runs.ts";
import type { Services } from "../connect/connection.ts";
import { settled } from "../connect/missing-service.ts";
import { requireAccess } from "../connect/readiness.ts";
import { askWithin, NoAnswer } from "../../temporal/patience.ts";
import { notPossible, ClientError, exitCodes, missing } from "../console/errors.ts";
import { attachedText, cleanAttachment, requireTextRoom, type Attachment } from "./attachments.ts";
import { idsOnly } from "../setup/services.ts";
import { parseSettings, recordNow, withRunning } from "./with-session.ts";
import { readStarter, workflowOptions, sessionHasEnded } from "./start-session.ts";
import { readStatus } from "./session-status.ts";
import { describeRun, isOfWorkflow } from "../connect/describe-run.ts";
import { present, shellWord } from "../console/format.ts";

/** Longer text is stored as a blob: a signal stays small. Source: invariant 1, messages.ts. */
const INLINE_BYTES = 16_384;
/** Source: requirement 4.1. */
const MAX_WAITING = 100;
/** How long to wait for a worker before the message is left with Temporal. */
const REPLY_MS = 5_000;

export interface Sent {
  /** False if a message with this id was sent before: it counts once. */
  readonly queued: boolean;
  /** From 1; 0 for one that was delivered already. */
  readonly position: number;
  /** False if no worker received it yet: Temporal keeps it until one does. */
  readonly acknowledged: boolean;
  readonly resumed: boolean;
  /** The run is ending and will not read it: it waits for the next run, which another message starts. */
  readonly waitsForNextRun?: true;
}

export interface MessageDraft {
  /** The sender's id: the same id is delivered once. */
  readonly id: string | undefined;
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

/** Whether it is a valid message id. */
export const isMessageId = (id: string) => /^[\w.:-]{1,128}$/.test(id);

/**
 * @throws ClientError (usage) if it is too long, (impossible) if the queue is full or the session refuses it, (missing) as
 * `requireAccess`
 */
export async function sendGuidance(services: Services, row: SessionRow, draft: MessageDraft): Promise<Sent> {
  requireTextRoom(draft.text, draft.attachments);
  const message = cleaned(draft);
  const { db } = services.store;
  const [waiting] = await Promise.all([countWaiting(db, row.id), requireAccess(services, row.id)]);
  // An ended session is resumed by this message, and then delivers waiting ones.
  if (row.endedAt === null && waiting >= MAX_WAITING) throw queueFull(row.id);
  // Temporal that is away is met before anything is stored.
  await services.temporal.client();
  const guidance: GuidanceMessage & { readonly id: string; readonly parts: readonly UserPart[] } = {
    id: message.id ?? randomUUID(),
    parts: await partsToSend(services, row.id, message),
    ...senderOf({ by: services.user }),
  };
  const entered = await enterMessage(services, row, guidance, message.text);
  // The same id counts once. What no run has received may not have been sent.
  if (entered === undefined || entered.entry === "received")
    return { queued: false, position: entered?.position ?? 0, acknowledged: true, resumed: false };
  const reply = await send(services, row, guidance, entered);
  const queued = entered.entry === "new" || (reply?.queued ?? true);
  const position = queued ? (reply?.position ?? entered.position) : entered.position;
  const waitsForNextRun = reply?.waitsForNextRun === true;
  return {
    queued,
    position,
    acknowledged: reply !== undefined,
    resumed: row.endedAt !== null && !waitsForNextRun,
    waitsForNextRun: waitsForNextRun || undefined,
  };
}

/**
 * Starts the session's run if none is on. A message that was certainly not sent is taken back.
 * @returns undefined if no worker answered: Temporal keeps it until one does
 */
async function send(
  services: Services,
  row: SessionRow,
  guidance: GuidanceMessage & { readonly id: string },
  entered: Entered,
): Promise<QueuedReply | undefined> {
  const client = await services.temporal.client();
  const { id } = guidance;
  const start = {
    ...workflowOptions(await readStarter(services), row.id, { task: row.task, config: parseSettings(row) }),
    args: [{}] satisfies [CodingAgentInput],
    workflowIdConflictPolicy: "USE_EXISTING" as const,
  };
  try {
    return await askWithin(client, REPLY_MS, () =>
      client.workflow.executeUpdateWithStart(sendGuidanceUpdate, {
        args: [guidance],
        // A new id for each update: for a known one, Temporal would repeat the earlier answer.
        updateId: `say-${id}-${randomUUID()}`,
        startWorkflowOperation: new WithStartWorkflowOperation(WORKFLOW_TYPE, start),
      }),
    );
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) {
      await takeBack(services, row, entered);
      throw refused(row.id, error);
    }
    // No worker answered, or the run has just closed. The message's id ensures that it is delivered only once.
    const sending = settled({
      make: async () => {
        const signal = { signal: guidanceSignal, signalArgs: [guidance] as [GuidanceMessage] };
        await client.workflow.signalWithStart(WORKFLOW_TYPE, { ...start, ...signal });
        return true;
      },
      find: () => hasReceived(client, row.id, id),
      what: `it has the message for ${row.id}`,
      again: `Send it again as ${id}, under which it counts once: longhaul say ${shellWord(row.id)} --id ${shellWord(id)} …`,
    });
    await sending.catch(async (failure: unknown) => {
      // Unless it is unknown whether the run has it.
      if (!(failure instanceof ClientError)) await takeBack(services, row, entered);
      throw failure;
    });
  }
  return undefined;
}

/** Whether the session's newest run has a message, by its history. */
async function hasReceived(client: Client, sessionId: string, id: string): Promise<true | undefined> {
  const run = await describedRun(client, sessionId);
  if (run === undefined) return undefined;
  const history = await readHistory(client, sessionId, run.runId);
  return (
    acceptedGuidance(history).some((item) => item.id === id || item.id.startsWith(`${id}#`)) || undefined
  );
}

/** A message's text and files as parts; long text is stored as a blob. The session keeps what is stored. */
export async function partsToSend(
  services: Services,
  sessionId: string,
  message: MessageDraft,
): Promise<UserPart[]> {
  const { db } = services.store;
  const bytes = Buffer.from(message.text);
  const parts: UserPart[] = [
    bytes.length <= (idsOnly() ? 0 : INLINE_BYTES)
      ? { type: "text", text: message.text }
      : await saveBlobFor(db, sessionId, { bytes, mediaType: "text/plain", filename: LONG_TEXT_NAME }),
  ];
  for (const file of message.attachments) {
    const text = attachedText(file);
    parts.push(
      await saveBlobFor(db, sessionId, text === undefined ? file : { ...file, bytes: Buffer.from(text) }),
    );
  }
  return parts;
}

function cleaned({ id, text, attachments }: MessageDraft): MessageDraft {
  const { clean } = clientSanitizer();
  return {
    id: id === undefined ? undefined : clean(id),
    text: clean(text),
    attachments: attachments.map((file) => cleanAttachment(file, clean)),
  };
}

interface Entered {
  /** From 1. */
  readonly position: number;
  readonly entry: "new" | "sent again" | "received";
  /** Of its rows: a long message has several. */
  readonly ids: readonly string[];
}

/**
 * Puts a message into the queue before it is sent: it is shown at once, and delivered even if its sender dies before it has sent it. Its
 * signal still has the words, for a database that is restored from an older copy.
 * @param text its beginning is shown
 * @returns undefined if a message with its id was delivered or withdrawn
 */
export async function enterMessage(
  { store }: Pick<Services, "store">,
  row: SessionRow,
  { id, parts, by }: { readonly id: string; readonly parts: readonly UserPart[]; readonly by?: string },
  text: string,
): Promise<Entered | undefined> {
  const step = (await readFigures(store.db, [row.id])).get(row.id)?.step ?? 0;
  const items = toGuidanceItems(id, parts, new Date().toISOString(), senderOf({ by }));
  const at = { sessionId: row.id, epoch: row.epoch, step };
  const entered = await store.db.transaction((tx) => enterGuidance(tx, at, items, text));
  return entered && { ...entered, ids: items.map((item) => item.id) };
}

function queueFull(id: string) {
  return notPossible(
    `${MAX_WAITING} messages are already waiting for ${id}: this one was not sent.`,
    `Send it again once some have been delivered: longhaul status ${shellWord(id)}`,
  );
}

function refused(id: string, error: WorkflowUpdateFailedError) {
  const reason = reasonOf(error.cause ?? error);
  return notPossible(`${id} did not accept the message: ${reason}`, "Nothing was sent.");
}

/** @throws ClientError (impossible) if the agent has read it already, (missing) if no worker answers */
export async function withdrawMessage(services: Services, row: SessionRow, id: string): Promise<void> {
  const { db } = services.store;
  const waits = (await knownGuidance(db, row.id, [id])).get(id);
  // Only a run knows a message that has no row yet.
  const isKept = waits === true && (await dropGuidance(db, row.id, id));
  if (!sessionHasEnded(row)) await informRun(services, row, id, isKept);
  else if (!isKept) throw tooLate(row.id, "the session has ended");
  if (!isKept && !(await dropGuidance(db, row.id, id))) throw tooLate(row.id, "the agent has it already");
  await recordWithdrawn(services, row, id);
}

/** For a message that no run has accepted: its sender is told so. */
export async function takeBack(services: Services, row: SessionRow, { ids, entry }: Entered): Promise<void> {
  if (entry !== "new") return;
  for (const id of ids) await dropGuidance(services.store.db, row.id, id);
  const [first] = ids;
  if (first !== undefined) await recordWithdrawn(services, row, first);
}

function recordWithdrawn(services: Services, row: SessionRow, id: string): Promise<void> {
  const data = { id, ...senderOf({ by: services.user }) };
  return recordNow(services, row, (step) => ({ type: "message:withdrawn", step, data }));
}

/**
 * Takes back every message that waits, oldest first; those that the agent reads meanwhile stay with it.
 * @returns the ids of those taken back
 * @throws ClientError (missing) if no worker answers
 */
export async function withdrawAll(services: Services, row: SessionRow): Promise<string[]> {
  const withdrawn: string[] = [];
  const tried = new Set<string>();
  for (;;) {
    // The run shows the oldest alone if there are many.
    const remaining = (await readStatus(services, row)).queue.filter(({ id }) => !tried.has(id));
    if (remaining.length === 0) return withdrawn;
    for (const { id } of remaining) {
      tried.add(id);
      if (await isWithdrawn(services, row, id)) withdrawn.push(id);
    }
  }
}

async function isWithdrawn(services: Services, row: SessionRow, id: string): Promise<boolean> {
  try {
    await withdrawMessage(services, row, id);
    return true;
  } catch (error) {
    if (error instanceof ClientError && error.exitCode === exitCodes.impossible) return false;
    throw error;
  }
}

/** @param isKept its row is marked: it is not delivered, whether or not the run knows */
async function informRun(services: Services, row: SessionRow, id: string, isKept: boolean): Promise<void> {
  try {
    await withRunning(services, row, (handle) =>
      askWithin(handle.client, REPLY_MS, () =>
        handle.executeUpdate(withdrawMessageUpdate, { args: [{ id }] }),
      ),
    );
  } catch (error) {
    if (isKept) return;
    if (error instanceof WorkflowUpdateFailedError) throw tooLate(row.id, reasonOf(error.cause ?? error));
    if (error instanceof NoAnswer) {
      throw missing(
        `No worker answered for ${row.id}, so the message may still be read.`,
        `Start a worker (longhaul worker), then see what waits: longhaul queue ${shellWord(row.id)}`,
      );
    }
    throw error;
  }
}

function tooLate(id: string, reason: string) {
  return notPossible(
    `Too late for ${id}: ${reason}`,
    `Say something else: longhaul say ${shellWord(id)} "…"`,
  );
}

/** @param what was sent, such as `the interrupt` */
export async function untakenNote(services: Services, id: string, what: string): Promise<string> {
  const trouble = (await describeRun(services, id))?.trouble;
  return isOfWorkflow(trouble)
    ? `No worker can take ${what}: Temporal keeps it until one can. It is tried again: ${trouble}`
    : `No worker has taken ${what} yet. Temporal keeps it until one does; start one with: longhaul worker`;
}

export async function sentNotes(
  services: Services,
  id: string,
  { acknowledged, waitsForNextRun, resumed }: Sent,
): Promise<string[]> {
  return present(
    !acknowledged && (await untakenNote(services, id, "it")),
    waitsForNextRun === true &&
      `${id} is ending and will not read it: the message is kept for its next run. Start that with: longhaul say ${shellWord(id)} "go on"`,
    resumed && `${id} had ended and resumes with it. Watch it: longhaul watch ${shellWord(id)}`,
  );
}
