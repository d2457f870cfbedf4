/** The library over open services: the commands' operations, without a terminal. */
import { readWhole, type SessionRow } from "../../activities/store/reading.ts";
import { listQuestions } from "../../activities/store/questions.ts";
import { describeRun } from "../connect/describe-run.ts";
import type { Services } from "../connect/connection.ts";
import { usageError, noSuchSession } from "../console/errors.ts";
import { productVersion } from "../console/program.ts";
import { cancelSession, interruptMessage, interruptSession } from "../sessions/stop-session.ts";
import { listDocuments, readStatus } from "../sessions/session-status.ts";
import { prepareStart } from "../sessions/prepare-start.ts";
import { cleanAnswer, sendAnswer } from "../sessions/send-answer.ts";
import { isMessageId, sendGuidance, withdrawAll, withdrawMessage } from "../sessions/guidance.ts";
import { exportDocument, callResult } from "../sessions/session-export.ts";
import { startSession } from "../sessions/start-session.ts";
import { recordAction, requireSession } from "../sessions/with-session.ts";
import { noStdin, readMessage } from "../sessions/task-input.ts";
import { trajectoryDocument } from "../sessions/transcript.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { follow } from "../watch/follow.ts";
import { SharedListener } from "../watch/shared-listener.ts";
import { noFiles, pullWorkspace, sessionDiff } from "../workspace/pull-workspace.ts";
import { batchesOver, schedulesOver } from "./batches.ts";
import { readAttachments } from "../sessions/attachments.ts";
import type { ConnectOptions, Event, EventOptions, Longhaul, SessionEnd } from "./types.ts";
import type { StartOptions } from "./start-options.ts";
import { compactionFocus, compactSession, undoCompaction } from "../sessions/compact-session.ts";
import { forkSession } from "../sessions/fork-session.ts";
import { retrySession } from "../sessions/retry-session.ts";
import { parseSessionId } from "../sessions/session-id.ts";

const DEFAULT_LIMIT = 50;

export interface LibraryOptions extends Pick<ConnectOptions, "model" | "config"> {
  /** Receives notes for the person who starts a session, one per line. */
  readonly onNote?: (line: string) => void;
  /** Shared with other clients over the same services; default: its own. */
  readonly listener?: SharedListener;
}

export function libraryOver(services: Services, options: LibraryOptions = {}): Longhaul {
  const { store } = services;
  const { listen } = options.listener ?? new SharedListener(store);
  const closed = new AbortController();
  const session = (reference: string) => requireSession(services, reference);
  const onNote = options.onNote ?? (() => undefined);
  return {
    batches: batchesOver(services, { flagsOf: (startOptions) => runFlags(startOptions, options), onNote }),
    schedules: schedulesOver(services),
    start: async (task, startOptions = {}) => {
      const { start } = await prepareStart([task], runFlags(startOptions, options), onNote, {
        stdin: noStdin(),
      });
      return startSession(services, start);
    },
    say: async (reference, text, { id, images, files } = {}) => {
      if (id !== undefined && !isMessageId(id))
        throw usageError(`${JSON.stringify(id)} is not a message id.`);
      const messageText = await readMessage([text], noStdin());
      const attachments = await readAttachments({ images, files });
      return sendGuidance(services, await session(reference), { id, text: messageText, attachments });
    },
    unsay: async (reference, message) => withdrawMessage(services, await session(reference), message),
    unsayAll: async (reference) => withdrawAll(services, await session(reference)),
    answer: async (reference, answer) =>
      sendAnswer(services, (await session(reference)).id, cleanAnswer(answer)),
    interrupt: async (reference, text) => {
      const message = text === undefined ? undefined : interruptMessage(text, reference);
      return interruptSession(services, await session(reference), message);
    },
    ...pastOf(services, session),
    cancel: async (reference) => cancelSession(services, await session(reference)),
    status: async (reference) => readStatus(services, await session(reference)),
    list: async (listing = {}) =>
      listDocuments(services, { ...listing, limit: listing.limit ?? DEFAULT_LIMIT, owner: services.user }),
    questions: async (reference) => {
      const of = reference === undefined ? undefined : (await session(reference)).id;
      return (await unlessTableMissing(() => listQuestions(store.db, { of }))) ?? [];
    },
    pull: async (reference, folder, { force = false } = {}) => {
      const row = await session(reference);
      const { id } = row;
      const pulled = await pullWorkspace(store, id, folder, { force });
      if (pulled === undefined) throw noFiles(row);
      await recordAction(services, row, "pull");
      return { files: pulled.files, skipped: pulled.skipped, unsafe: pulled.unsafe };
    },
    diff: async (reference) => {
      const { changed, patch, ignored } = await sessionDiff(store, await session(reference));
      return { changed, patch, ignored };
    },
    export: async (reference, format = "own") => exported(store, await session(reference), format),
    events: (reference, eventOptions) =>
      events({ services, listen, closed: closed.signal }, reference, eventOptions),
    close: async () => {
      closed.abort();
      await services.close();
    },
  };
}

async function exported({ db }: Services["store"], row: SessionRow, format: "own" | "atif") {
  const whole = await readWhole(db, row.id);
  return format === "atif" ? trajectoryDocument(row, whole, productVersion()) : exportDocument(row, whole);
}

interface Source {
  readonly services: Services;
  readonly listen: SharedListener["listen"];
  /** Ends all iterations. */
  readonly closed: AbortSignal;
}

async function* events(
  { services, listen, closed }: Source,
  reference: string,
  { from = 0, signal }: EventOptions = {},
): AsyncGenerator<Event, SessionEnd | undefined> {
  const { id } = await requireSession(services, reference);
  const items = follow({
    store: services.store,
    sessionId: id,
    afterSeq: from,
    signal: signal === undefined ? closed : AbortSignal.any([signal, closed]),
    listen,
    describe: () => describeRun(services, id),
  });
  for await (const item of items) {
    if (item.kind === "event") yield item.event as Event;
    if (item.kind !== "ended") continue;
    const { status, result, lastSeq, reason } = item;
    return { status, result, lastSeq, reason };
  }
  return undefined;
}

/** The flags of a library call: services and workers run elsewhere and have the keys. */
function runFlags(startOptions: StartOptions, { model, config }: LibraryOptions) {
  const { maxCostUsd, deadlineMs, images, files, ...more } = startOptions;
  return {
    setup: false,
    ...more,
    model: more.model ?? model,
    config,
    maxCost: maxCostUsd,
    deadline: deadlineMs,
    image: images,
    file: files,
  };
}

type Past = Pick<Longhaul, "callResult" | "compact" | "undoCompaction" | "context" | "retry" | "fork">;

/** The methods on what a session has behind it: its calls, its context, its compactions, earlier steps. */
function pastOf(services: Services, session: (reference: string) => Promise<SessionRow>): Past {
  return {
    callResult: async (reference, call) => callResult(services, await session(reference), call),
    compact: async (reference, { focus = "" } = {}) => {
      const checkedFocus = compactionFocus(focus);
      await compactSession(services, await session(reference), checkedFocus);
    },
    undoCompaction: async (reference) => undoCompaction(services, await session(reference)),
    context: async (reference) => {
      const { id } = await session(reference);
      const { readContext } = await import("../../activities/context/context-report.ts");
      const report = await readContext(services.store.db, id);
      if (report === undefined) throw noSuchSession(id);
      return report;
    },
    retry: async (reference, { fromStep, dropMessages = false } = {}) =>
      retrySession(services, await session(reference), { fromStep, dropMessages }),
    fork: async (reference, { fromStep, message, id } = {}) => {
      const chosen = id === undefined ? undefined : parseSessionId(id);
      const messageText = message === undefined ? undefined : await readMessage([message], noStdin());
      const row = await session(reference);
      return { id: await forkSession(services, row, { fromStep, message: messageText, id: chosen }) };
    },
  };
}
