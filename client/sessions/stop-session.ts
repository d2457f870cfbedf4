/** Ends a session's run, or aborts its step in flight, and says what was kept of it. */
import { databaseNow, readKept, type Kept } from "../../activities/store/session-standing.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { until, askWithin } from "../../temporal/patience.ts";
import type { Services } from "../connect/connection.ts";
import { describeRun, unlessGone, type RunDescription } from "../connect/describe-run.ts";
import { missing, notPossible, usageError } from "../console/errors.ts";
import { notRunning, withRunning, recordAction } from "./with-session.ts";
import { randomUUID } from "node:crypto";
import { senderOf } from "../../activities/contract/guidance.ts";
import { readWaiting } from "../../activities/store/guidance.ts";
import { interruptSignal, statusQuery, type SessionView } from "../../workflows/messages.ts";
import { clientSanitizer } from "../config/config.ts";
import { enterMessage, takeBack } from "./guidance.ts";
import { harmlessLine, present, shellWord } from "../console/format.ts";

const POLL_MS = 100;
const WAIT_NOTE_MS = 5_000;
const CANCEL_WAIT_MS = 60_000;

export interface CancelledRun extends Kept {
  readonly runId: string;
}

/**
 * @param onSlow called once if the clean-up takes longer than 5 s
 * @throws ClientError (impossible) if nothing runs, or the run ended in another way first; (missing) if no worker
 *   takes the cancel for a minute: it is kept
 */
export async function cancelSession(
  services: Services,
  row: SessionRow,
  onSlow: () => void = () => undefined,
): Promise<CancelledRun> {
  const { id } = row;
  const { store } = services;
  const since = await databaseNow(store.db);
  let run = await describeRun(services, id);
  // If Temporal gave no answer, a second request reports what is wrong.
  if (run === undefined) await withRunning(services, row, (handle) => handle.describe());
  let cancelledRunId: string | undefined;
  const isClosed = () => run !== undefined && run.status !== "RUNNING" && run.status !== "CONTINUED_AS_NEW";
  const slow = setTimeout(onSlow, WAIT_NOTE_MS);
  const closed = await until(
    async () => {
      if (isClosed()) return true;
      if (run?.status === "RUNNING" && cancelledRunId !== run.runId) {
        // The session's end is the last event.
        if (cancelledRunId === undefined) await recordAction(services, row, "cancel");
        if (await requestCancel(services, id, run)) cancelledRunId = run.runId;
      }
      // If the run continued as new, its successor is the run to end.
      const followed = run?.status === "CONTINUED_AS_NEW" ? undefined : run?.runId;
      run = (await describeRun(services, id, followed)) ?? run;
      return isClosed();
    },
    CANCEL_WAIT_MS,
    POLL_MS,
  ).finally(() => clearTimeout(slow));
  if (!closed) throw noWorker(id, run?.trouble);
  if (cancelledRunId === undefined) throw notRunning(row);
  if (run?.status !== "CANCELLED") throw endedOtherwise(id, run?.status ?? "");
  return { runId: cancelledRunId, ...(await readKept(store.db, id, since)) };
}

/** @returns false if it has just ended: the next check shows how */
async function requestCancel(services: Services, id: string, { runId }: RunDescription): Promise<boolean> {
  const client = await services.temporal.client();
  const requested = await unlessGone(() => client.workflow.getHandle(id, runId).cancel());
  return requested !== undefined;
}

function endedOtherwise(id: string, status: string) {
  return status === "TERMINATED"
    ? notPossible(
        `The run of ${id} was replaced by a retry or terminated before the cancel reached it.`,
        `See where it stands: longhaul status ${shellWord(id)}`,
      )
    : notPossible(`${id} ended by itself before the cancel reached it (${status.toLowerCase()}).`);
}

function noWorker(id: string, trouble: string | undefined) {
  return missing(
    `${id} was asked to cancel, and no worker has done so within ${CANCEL_WAIT_MS / 1_000} s.`,
    trouble === undefined
      ? "The request is kept: start a worker with `longhaul worker`."
      : `The request is kept. It is tried again: ${trouble}`,
  );
}

/** How long to wait for a worker before the interrupt is left with Temporal. */
const INTERRUPT_REPLY_MS = 5_000;
const INTERRUPT_WAIT_MS = 20_000;

export interface Interrupted extends Kept {
  /** False if no worker received it yet: Temporal keeps it until one does. */
  readonly acknowledged: boolean;
  /** How many messages waited before: the session continues with them. */
  readonly waiting: number;
}

/** Longer ones go through `say`, which stores them. */
const MAX_BYTES = 16_384;

/** A person's text, checked for its length. @throws ClientError (usage) if it is too long */
export function interruptMessage(text: string, reference: string): string {
  if (Buffer.byteLength(text) > MAX_BYTES) {
    throw usageError(
      `The message has more than ${MAX_BYTES} bytes: nothing was sent.`,
      `Say it first (longhaul say ${shellWord(reference)} -), then interrupt without a message.`,
    );
  }
  return clientSanitizer().clean(text);
}

/** @throws ClientError (impossible) if the session does not run, (missing) as `requireAccess` */
export async function interruptSession(
  services: Services,
  row: SessionRow,
  text: string | undefined,
): Promise<Interrupted> {
  const { db } = services.store;
  const [since, waiting] = await Promise.all([databaseNow(db), readWaiting(db, row.id)]);
  // An empty message would be announced but never delivered: the run does not accept one.
  const message =
    text === undefined || text.trim() === ""
      ? undefined
      : {
          id: randomUUID(),
          parts: [{ type: "text" as const, text }],
          ...senderOf({ by: services.user }),
        };
  const acknowledged = await withRunning(services, row, async (handle) => {
    const entered = message && (await enterMessage(services, row, message, text ?? ""));
    try {
      await handle.signal(interruptSignal, message);
    } catch (error) {
      if (entered) await takeBack(services, row, entered);
      throw error;
    }
    await recordAction(services, row, "interrupt");
    let view: SessionView | undefined;
    const hasStopped = async () => {
      const reply = askWithin(handle.client, INTERRUPT_REPLY_MS, () => handle.query(statusQuery));
      view = await reply.catch(() => undefined);
      // If the run has ended meanwhile, waiting longer is useless.
      return view?.interrupting !== true || (view.status !== "active" && view.status !== "waiting");
    };
    await until(hasStopped, INTERRUPT_WAIT_MS, POLL_MS);
    return view !== undefined;
  });
  return { acknowledged, waiting: waiting.length, ...(await readKept(db, row.id, since)) };
}

/** Tools that ask a person, and print nothing. */
const QUESTIONS = ["ask_user", "exit_plan"];
const EXCERPT_CHARS = 120;

/** What was kept of an interrupted step, for people. */
export function describeKept({ kept, step, text, tools }: Kept): string {
  switch (kept) {
    case "partial text":
      return `Kept: what the model had said in step ${step} ("${harmlessLine(text ?? "", EXCERPT_CHARS)}").`;
    case "tools in progress": {
      const names = [...new Set(tools.map(({ name }) => name))];
      const others = names.filter((name) => !QUESTIONS.includes(name));
      return present(
        others.length > 0 && `Kept: the output so far of ${others.join(", ")} (step ${step}).`,
        others.length < names.length && `The question of step ${step} is withdrawn.`,
      ).join(" ");
    }
    case "nothing":
      return "Nothing was in progress.";
  }
}
