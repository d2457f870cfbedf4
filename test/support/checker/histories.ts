/** Temporal's side of the evidence: each run's history, the messages it accepted, and whether it replays. */
import type { Client } from "@temporalio/client";
import { Worker } from "@temporalio/worker";
import { ensureWorkflowBundle } from "../../../worker/bundle.ts";
import { dataConverter } from "../../../temporal/codec.ts";
import { isEmptyMessage, idOf, partsOf } from "../../../activities/contract/guidance.ts";
import { quietRuntime } from "../quiet-runtime.ts";
import { readableHistory } from "../stored.ts";
import type { RunHistory } from "./evidence.ts";
import { workflowSinks } from "../../../worker/worker-options.ts";

type History = Awaited<ReturnType<ReturnType<Client["workflow"]["getHandle"]>["fetchHistory"]>>;
type HistoryEvent = NonNullable<History["events"]>[number];

/** Histories of these runs and of the newest, oldest first; runs that Temporal has forgotten are left out. */
export async function collectHistories(
  client: Client,
  sessionId: string,
  runIds: readonly string[],
): Promise<RunHistory[]> {
  quietRuntime();
  const newest = await client.workflow
    .getHandle(sessionId)
    .describe()
    .catch(() => undefined);
  const ids = [...new Set([...runIds, ...(newest ? [newest.runId] : [])])];
  const list: (Omit<RunHistory, "replayFailure"> & { readonly history: History })[] = [];
  for (const runId of ids) {
    const handle = client.workflow.getHandle(sessionId, runId);
    const [found, history] = await Promise.all([handle.describe(), handle.fetchHistory()]).catch(() => []);
    if (!found || !history) continue;
    const payloads = payloadsIn(history);
    list.push({
      runId,
      status: found.status.name,
      accepted: acceptedIn(history),
      text: readableHistory(history),
      largestPayload: Math.max(0, ...payloads.map((data) => data.byteLength)),
      history: asReplayed(history, runId),
    });
  }
  const failures = await replayFailures(
    sessionId,
    list.map(({ history }) => history),
  );
  return list.map(({ history: _replayed, ...run }, index) => ({ ...run, replayFailure: failures[index] }));
}

/** A replay takes a run's id from its first event, which a reset leaves as it was. */
function asReplayed({ events }: History, originalExecutionRunId: string): History {
  const [first, ...others] = events ?? [];
  if (!first) return {};
  const workflowExecutionStartedEventAttributes = {
    ...first.workflowExecutionStartedEventAttributes,
    originalExecutionRunId,
  };
  return { events: [{ ...first, workflowExecutionStartedEventAttributes }, ...others] } as History;
}

/** One after the other: the SDK shuts down its runtime with the last worker, even while another is being created. */
let replays: Promise<unknown> = Promise.resolve();

/** By one worker, which takes most of the time of a replay to start. @returns what each history failed with */
function replayFailures(
  workflowId: string,
  histories: readonly History[],
): Promise<readonly (string | undefined)[]> {
  const replay = replays.then(() => replayAll(workflowId, histories));
  replays = replay.catch(() => undefined);
  return replay;
}

async function replayAll(
  workflowId: string,
  histories: readonly History[],
): Promise<readonly (string | undefined)[]> {
  if (histories.length === 0) return [];
  const { codePath } = await ensureWorkflowBundle();
  const failures: (string | undefined)[] = [];
  const replayed = Worker.runReplayHistories(
    { workflowBundle: { codePath }, dataConverter, sinks: workflowSinks() },
    histories.map((history) => ({ workflowId, history })),
  );
  for await (const { error } of replayed) failures.push(error?.message.slice(0, 500));
  return histories.map((_history, index) =>
    index < failures.length ? failures[index] : "It was not replayed: the replay ended before it.",
  );
}

/** Ids of people's messages, in the order in which the run accepted them, without repeated ones. */
function acceptedIn({ events }: History): string[] {
  const ids = (events ?? []).flatMap((event) => {
    const signal = event.workflowExecutionSignaledEventAttributes;
    if (signal && (signal.signalName === "guidance" || signal.signalName === "interrupt"))
      return messageOf(valueOf(signal.input?.payloads?.[0]));
    const update = event.workflowExecutionUpdateAcceptedEventAttributes;
    const { input } = update?.acceptedRequest ?? {};
    if (input?.name === "sendGuidance") return messageOf(valueOf(input.args?.payloads?.[0]));
    return startedWith(event);
  });
  return [...new Set(ids)];
}

function startedWith(event: HistoryEvent): string[] {
  const input = valueOf(event.workflowExecutionStartedEventAttributes?.input?.payloads?.[0]);
  if (typeof input !== "object" || input === null) return [];
  const { guidance = [] } = input as { guidance?: readonly { id: string }[] };
  return guidance.map(({ id }) => id);
}

function messageOf(message: unknown): string[] {
  const id = idOf(message);
  const parts = partsOf(message);
  return id !== undefined && parts && !isEmptyMessage(parts) ? [id] : [];
}

function valueOf(payload: { data?: Uint8Array | null } | undefined): unknown {
  if (!payload?.data || payload.data.byteLength === 0) return undefined;
  try {
    return JSON.parse(Buffer.from(payload.data).toString());
  } catch {
    return undefined;
  }
}

function payloadsIn(value: unknown): Uint8Array[] {
  if (value instanceof Uint8Array) return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(payloadsIn);
}
