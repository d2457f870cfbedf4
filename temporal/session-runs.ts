/** A session's runs as Temporal knows them: which one is current, and which messages the ended ones received. */
import type { Client } from "@temporalio/client";
import { acceptedGuidance } from "./accepted-guidance.ts";
import { describedRun, type RunStatus } from "./described-run.ts";
import { listRuns } from "./list-runs.ts";
import { readHistory } from "./read-history.ts";
import { originOf, placeAfter } from "./reset-origin.ts";
import { whereFound } from "./where-found.ts";
import { cleanDeep } from "../activities/redaction/clean-deep.ts";
import type { Guidance } from "../activities/contract/guidance.ts";
import type { SessionRuns, UnkeptRuns } from "../activities/contract/session-runs.ts";

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
export function temporalRuns(client: Client, clean: (text: string) => string): SessionRuns {
  const bounded = <T>(ask: () => Promise<T>): Promise<T> =>
    client.withAbortSignal(AbortSignal.timeout(ANSWER_MS), ask);
  const messagesTo = (sessionId: string, runs: readonly KnownRun[]) =>
    saidTo({ client, clean }, sessionId, runs);
  const known = async (sessionId: string, runId: string): Promise<KnownRun | undefined> => {
    const found = await describedRun(client, sessionId, runId);
    return found && { runId, isKept: isKept(found.status), startedMs: found.startedMs };
  };
  return {
    namespace: client.options.namespace,
    async isCurrent(sessionId, runId) {
      const found = await bounded(() => describedRun(client, sessionId));
      return found?.runId === runId && found.status === "RUNNING";
    },
    async isRunning(sessionId) {
      return (await bounded(() => describedRun(client, sessionId)))?.status === "RUNNING";
    },
    async cancel(sessionId) {
      await bounded(() => whereFound(client.workflow.getHandle(sessionId).cancel()));
    },
    said: (sessionId, runId) =>
      bounded(async () => messagesTo(sessionId, inOrder(await runsOf(client, sessionId, runId)))),
    finished: (sessionId, runId) => bounded(() => finishedStep(client, sessionId, runId)),
    newestEnded: (sessionId, asking) =>
      bounded(async () => {
        const all = inOrder(await runsOf(client, sessionId, undefined));
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
      runsOf(client, sessionId, ending),
    ]);
    const others = all.filter(({ runId }) => runId !== inCharge && runId !== asking);
    // An ended run's entry in the list is final; a run that may be running is asked for again.
    const asked = others.map(async (run) => (run.isRunning ? known(sessionId, run.runId) : run));
    const later = (await Promise.all(asked)).filter(
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
  const place = history && placeAfter(history.events ?? []);
  if (place?.step === undefined) return 0;
  return place.phase === "tools" ? place.step : place.step - 1;
}

/** The runs of Temporal's list, which may lag behind by a moment, and the run that the caller knows. */
async function runsOf(client: Client, sessionId: string, known: string | undefined): Promise<OtherRun[]> {
  const found = new Map<string, OtherRun>();
  if (known !== undefined) found.set(known, { runId: known, isRunning: true, isKept: true, startedMs: 0 });
  for await (const { runId, startedMs, status } of listRuns(client, { workflowId: sessionId })) {
    const isRunning = runId === known || status === "RUNNING";
    found.set(runId, { runId, isRunning, isKept: isKept(status), startedMs });
  }
  return [...found.values()];
}

/** Whether a run stored its undelivered messages: one that ended by itself did; one that failed may have had no Postgres. */
function isKept(status: RunStatus): boolean {
  return !["TERMINATED", "TIMED_OUT", "FAILED"].includes(status);
}
