/** A message for a session: queued where it runs, and the first of a new run where it has ended. */
import { randomUUID } from "node:crypto";
import { WithStartWorkflowOperation, WorkflowUpdateFailedError } from "@temporalio/client";
import { runConfigSchema } from "../activities/agent-config.ts";
import type { UserPart } from "../activities/context/message.ts";
import { saveBlob } from "../activities/store/blobs.ts";
import { appendEvents } from "../activities/store/events.ts";
import { readFigures, readWaiting, type SessionRow } from "../activities/store/reading.ts";
import {
  guidanceSignal,
  sendGuidanceUpdate,
  WORKFLOW_TYPE,
  type CodingAgentInput,
  type GuidanceMessage,
  type QueuedReply,
} from "../workflows/messages.ts";
import type { Services } from "./connection.ts";
import { within } from "../worker/local/within.ts";
import { notPossible } from "./errors.ts";
import type { Attachment } from "./images.ts";
import { oneLine } from "./render/format.ts";
import { workflowOptions } from "./start-session.ts";

/** Text beyond this goes as a blob: a signal stays small. Source: invariant 1, messages.ts. */
const INLINE_BYTES = 16_384;
/** Source: requirement 4.1. */
const MAX_WAITING = 100;
/** How long a worker may take to answer before the message is left with Temporal. */
const REPLY_MS = 5_000;
const EXCERPT_CHARS = 200;

export interface Sent {
  /** False where a message with this id was sent before: it counts once. */
  readonly queued: boolean;
  readonly position: number;
  /** False where no worker took it yet: Temporal keeps it until one does. */
  readonly acknowledged: boolean;
  readonly resumed: boolean;
}

export interface NewMessage {
  /** The sender's id: the same id is delivered once. */
  readonly id: string | undefined;
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

/** @throws ClientError (impossible) where the queue is full or the session refuses it */
export async function sendGuidance(services: Services, row: SessionRow, message: NewMessage): Promise<Sent> {
  const { db } = services.store;
  const waiting = await readWaiting(db, row.id);
  if (waiting.length >= MAX_WAITING) throw queueFull(row.id);
  const client = await services.temporal.client();
  const id = message.id ?? randomUUID();
  const guidance: GuidanceMessage = { id, parts: await partsOf(services, message) };
  const start = {
    ...workflowOptions(services.taskQueue, row.id, {
      task: row.task,
      config: runConfigSchema.parse(row.config),
    }),
    args: [{}] satisfies [CodingAgentInput],
    workflowIdConflictPolicy: "USE_EXISTING" as const,
  };
  const resumed = row.endedAt !== null;
  let reply: QueuedReply | undefined;
  try {
    reply = await within(
      client.workflow.executeUpdateWithStart(sendGuidanceUpdate, {
        args: [guidance],
        updateId: `say-${id}`,
        startWorkflowOperation: new WithStartWorkflowOperation(WORKFLOW_TYPE, start),
      }),
      REPLY_MS,
    );
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) throw refused(row.id, error);
    // No worker answered, or the run closed in this very moment. Told apart by its id, it counts once however often it is sent.
    await client.workflow.signalWithStart(WORKFLOW_TYPE, {
      ...start,
      signal: guidanceSignal,
      signalArgs: [guidance],
    });
  }
  const position = reply?.position ?? waiting.filter((other) => other.id !== id).length + 1;
  const queued = reply?.queued ?? true;
  if (queued)
    await tellWatchers(services, row, { id, position, excerpt: oneLine(message.text, EXCERPT_CHARS) });
  return { queued, position, acknowledged: reply !== undefined, resumed };
}

/** A message's text and files as parts; what is long goes as a blob. */
export async function partsOf(services: Services, message: NewMessage): Promise<UserPart[]> {
  const { db } = services.store;
  const bytes = Buffer.from(message.text);
  const parts: UserPart[] = [
    bytes.length <= INLINE_BYTES
      ? { type: "text", text: message.text }
      : await saveBlob(db, bytes, "text/plain", "message.txt"),
  ];
  for (const file of message.attachments) {
    parts.push(await saveBlob(db, file.bytes, file.mediaType, file.filename));
  }
  return parts;
}

/** The workflow has no hands of its own: who sends is who tells. */
async function tellWatchers(
  services: Services,
  row: SessionRow,
  data: { id: string; position: number; excerpt: string },
): Promise<void> {
  const { db, pool } = services.store;
  const figures = (await readFigures(db, [row.id])).get(row.id);
  await appendEvents(db, row.id, row.epoch, [{ type: "message:queued", step: figures?.step ?? 0, data }]);
  await pool.query("select pg_notify('longhaul_events', $1)", [row.id]);
}

function queueFull(id: string) {
  return notPossible(
    `${MAX_WAITING} messages wait for ${id} already: this one was not sent.`,
    `Say it once some are taken: longhaul status ${id}`,
  );
}

function refused(id: string, error: WorkflowUpdateFailedError) {
  const reason = error.cause instanceof Error ? error.cause.message : error.message;
  return notPossible(`${id} did not take the message: ${reason}`, "Nothing was sent.");
}
