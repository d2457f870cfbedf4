/**
 * A session's runs as Temporal knows them: which one is current, and which messages the ended ones received, read from their
 * histories where they ended without storing them.
 */
import type { Client } from "@temporalio/client";
import { describedRun, type RunStatus, whereFound, readHistory } from "./runs.ts";
import { describedOwnRun, type Installation, listOwnRuns } from "./own-runs.ts";
import { originOf, placeAfter } from "./reset-origin.ts";
import { cleanDeep } from "../activities/text/clean.ts";
import {
  type Guidance,
  isEmptyMessage,
  senderOf,
  createUnnamedIds,
  idOf,
  toGuidanceItems,
  partsOf,
} from "../activities/contract/guidance.ts";
import type { SessionRuns, UnkeptRuns } from "../activities/contract/session-runs.ts";
import { defaultPayloadConverter, type Payload } from "@temporalio/common";
import { optionalTsToMs } from "@temporalio/common/lib/time.js";
import type { History } from "@temporalio/common/lib/proto-utils.js";

/** Timeout for all requests of one call, in ms. Source: shorter than the minute that the quick activities have. */
const ANSWER_MS = 45_000;

interface KnownRun {
  readonly runId: string;
  readonly isKept: boolean;
  readonly startedMs: number;
}

interface OtherRun extends KnownRun {
  /** According to Temporal's list, which may lag behind. */
  readonly isRunning: boolean;
}

/** @param clean cleans every text before it is stored */
export function temporalRuns(
  client: Client,
  own: Installation,
  clean: (text: string) => string,
): SessionRuns {
  const bounded = <T>(ask: () => Promise<T>): Promise<T> =>
    client.withAbortSignal(AbortSignal.timeout(ANSWER_MS), ask);
  const messagesTo = (sessionId: string, runs: readonly KnownRun[]) =>
    saidTo({ client, clean }, sessionId, runs);
  const known = async (sessionId: string, runId: string): Promise<KnownRun | undefined> => {
    const run = await describedOwnRun(client, own, sessionId, runId);
    return run && { runId, isKept: isKept(run.status), startedMs: run.startedMs };
  };
  return {
    namespace: client.options.namespace,
    async isCurrent(sessionId, runId) {
      const run = await bounded(() => describedRun(client, sessionId));
      return run?.runId === runId && run.status === "RUNNING";
    },
    async isRunning(sessionId) {
      return (await bounded(() => describedOwnRun(client, own, sessionId)))?.status === "RUNNING";
    },
    async cancel(sessionId) {
      await bounded(async () => {
        const run = await describedOwnRun(client, own, sessionId);
        if (run !== undefined) await whereFound(client.workflow.getHandle(sessionId).cancel());
      });
    },
    said: (sessionId, runId) =>
      bounded(async () => messagesTo(sessionId, inOrder(await runsOf({ client, own }, sessionId, runId)))),
    finished: (sessionId, runId) => bounded(() => finishedStep(client, sessionId, runId)),
    newestEnded: (sessionId, asking) =>
      bounded(async () => {
        const all = inOrder(await runsOf({ client, own }, sessionId, undefined));
        return all.findLast(({ runId, isRunning }) => !isRunning && runId !== asking)?.runId;
      }),
    unkept: (sessionId, runs) => bounded(() => unkept(sessionId, runs)),
    origin: (sessionId, runId) =>
      bounded(async () => {
        const history = await whereFound(readHistory(client, sessionId, runId));
        return history && originOf(history);
      }),
  };

  async function unkept(sessionId: string, { inCharge, asking, ending }: UnkeptRuns): Promise<Guidance[]> {
    const [before, all] = await Promise.all([
      inCharge === undefined ? undefined : known(sessionId, inCharge),
      runsOf({ client, own }, sessionId, ending),
    ]);
    const others = all.filter(({ runId }) => runId !== inCharge && runId !== asking);
    // An ended run's entry in the list is final; a run that may be running is asked for again.
    const descriptions = others.map(async (run) => (run.isRunning ? known(sessionId, run.runId) : run));
    const later = (await Promise.all(descriptions)).filter(
      (run) => run !== undefined && (before === undefined || run.startedMs >= before.startedMs),
    );
    const runs = [before, ...later]
      .filter((run) => run !== undefined)
      .filter((run) => !run.isKept || run.runId === ending)
      .toSorted((a, b) => a.startedMs - b.startedMs);
    return messagesTo(sessionId, runs);
  }
}

/** Oldest first. One that the list does not have yet began just now. */
function inOrder(runs: readonly OtherRun[]): OtherRun[] {
  const startOf = ({ startedMs }: OtherRun) => startedMs || Infinity;
  return runs.toSorted((a, b) => (startOf(a) < startOf(b) ? -1 : 1));
}

async function saidTo(
  { client, clean }: { readonly client: Client; readonly clean: (text: string) => string },
  sessionId: string,
  runs: readonly KnownRun[],
): Promise<Guidance[]> {
  const messages: Guidance[] = [];
  for (const { runId } of runs) {
    // The list may still name a run whose history is gone.
    const history = await whereFound(readHistory(client, sessionId, runId));
    if (history !== undefined) messages.push(...(cleanDeep(acceptedGuidance(history), clean) as Guidance[]));
  }
  return messages;
}

/** The last step that a run had finished by its history. @returns 0 if Temporal does not have it */
export async function finishedStep(client: Client, sessionId: string, runId: string): Promise<number> {
  const history = await whereFound(readHistory(client, sessionId, runId));
  const position = history && placeAfter(history.events ?? []);
  if (position?.step === undefined) return 0;
  return position.phase === "tools" ? position.step : position.step - 1;
}

/** The runs of Temporal's list, which may lag behind by a moment, and the run that the caller knows. */
async function runsOf(
  { client, own }: { readonly client: Client; readonly own: Installation },
  sessionId: string,
  known: string | undefined,
): Promise<OtherRun[]> {
  const runs = new Map<string, OtherRun>();
  if (known !== undefined) runs.set(known, { runId: known, isRunning: true, isKept: true, startedMs: 0 });
  for await (const { runId, startedMs, status } of listOwnRuns(client, own, { workflowId: sessionId })) {
    const isRunning = runId === known || status === "RUNNING";
    runs.set(runId, { runId, isRunning, isKept: isKept(status), startedMs });
  }
  return [...runs.values()];
}

/** Whether a run stored its undelivered messages: one that ended by itself did; one that failed may have had no Postgres. */
function isKept(status: RunStatus): boolean {
  return !["TERMINATED", "TIMED_OUT", "FAILED"].includes(status);
}

type Event = NonNullable<History["events"]>[number];

/**
 * All messages that a run received, in order of arrival and under the ids that the run itself gives them: those it was
 * started with, signals, and updates that it accepted.
 */
export function acceptedGuidance({ events }: History): Guidance[] {
  const list = events ?? [];
  const unnamed = createUnnamedIds(runKeyOf(list));
  const items = list.flatMap((event) => {
    const queuedAt = new Date(optionalTsToMs(event.eventTime) ?? 0).toISOString();
    return [
      ...startedWith(event),
      ...messagesIn(event).flatMap((message) => {
        const parts = partsOf(message);
        if (!parts || isEmptyMessage(parts)) return [];
        return toGuidanceItems(idOf(message) ?? unnamed(parts), parts, queuedAt, senderOf(message));
      }),
    ];
  });
  // A message that its sender took back counts as seen.
  const seen = new Set<string>(list.flatMap(takenBackBy));
  return items.filter(({ id }) => !seen.has(id) && seen.add(id));
}

/** The same key as in the workflow: the chain of runs, and when this run's first task began. A reset keeps both. */
function runKeyOf(events: readonly Event[]): string {
  const chain = events[0]?.workflowExecutionStartedEventAttributes?.firstExecutionRunId ?? "";
  const first = events.find((event) => event.workflowTaskCompletedEventAttributes);
  const startedEventId = String(first?.workflowTaskCompletedEventAttributes?.startedEventId);
  const startedEvent = events.find((event) => String(event.eventId) === startedEventId);
  return `${chain} ${optionalTsToMs(startedEvent?.eventTime) ?? 0}`;
}

/** Ids of messages that the run's queue had until their sender withdrew them. */
function takenBackBy(event: Event): string[] {
  const input =
    event.workflowExecutionUpdateAdmittedEventAttributes?.request?.input ??
    event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input;
  if (input?.name !== "withdrawMessage") return [];
  const { id } = (valueOf(input.args?.payloads?.[0]) ?? {}) as { readonly id?: unknown };
  return typeof id === "string" ? [id] : [];
}

function startedWith(event: Event): Guidance[] {
  const input = valueOf(event.workflowExecutionStartedEventAttributes?.input?.payloads?.[0]);
  if (typeof input !== "object" || input === null) return [];
  const { guidance, carried } = input as {
    guidance?: unknown;
    carried?: { inbox?: { queue?: unknown } } | null;
  };
  return [guidance, carried?.inbox?.queue].flatMap((list) =>
    Array.isArray(list) ? (list as Guidance[]) : [],
  );
}

/** What an event carries that may be a message. A reset that applies an update again records it as admitted. */
function messagesIn(event: Event): unknown[] {
  const signal = event.workflowExecutionSignaledEventAttributes;
  if (signal) {
    const isMessage = signal.signalName === "guidance" || signal.signalName === "interrupt";
    return isMessage ? [valueOf(signal.input?.payloads?.[0])] : [];
  }
  const input =
    event.workflowExecutionUpdateAdmittedEventAttributes?.request?.input ??
    event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input;
  return input?.name === "sendGuidance" ? [valueOf(input.args?.payloads?.[0])] : [];
}

/** Undefined for a payload that the run could not read either. */
function valueOf(payload: Payload | null | undefined): unknown {
  if (!payload) return undefined;
  try {
    return defaultPayloadConverter.fromPayload(payload);
  } catch {
    return undefined;
  }
}
