/** A batch as people and scripts see it, at one moment and until it ends. */
import { batchWorkflowId, type BatchFigures, batchLine } from "../../activities/contract/batch.ts";
import {
  batchFigures,
  findBatch,
  listBatches,
  listItems,
  type Batch,
} from "../../activities/store/batches.ts";
import type { ChosenAttempt } from "../../activities/contract/attempts.ts";
import { chosenAttempt } from "../../activities/store/attempts.ts";
import type { Services } from "../connect/connection.ts";
import { describeRun } from "../connect/describe-run.ts";
import { exitCodes, notPossible, type ExitCode, ClientError } from "../console/errors.ts";
import { table, harmlessLine, shellWord } from "../console/format.ts";
import { dollars } from "../../activities/text/format.ts";
import type { Style, Output } from "../console/output.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { plainReason } from "../../temporal/service-missing.ts";
import { LiveArea } from "../screen/live-area.ts";

/** A batch without its items. */
export interface BatchSummary extends BatchFigures {
  readonly name: string;
  readonly status: string;
  readonly concurrency: number;
  readonly stopAfter: number | null;
  readonly maxCostUsd: number | null;
  /** ISO times. */
  readonly createdAt: string;
  readonly endedAt: string | null;
}

export interface BatchDocument extends BatchSummary {
  readonly items: readonly BatchItemDocument[];
  /** Of attempts at one task, the one that was chosen. */
  readonly chosen?: ChosenAttempt;
}

interface BatchItemDocument {
  readonly id: string;
  readonly status: string;
  readonly session: string | null;
  readonly attempt: number;
  readonly failure: string | null;
  readonly task: string;
}

/** @throws ClientError (impossible) if there is no batch of that name */
export async function readBatch(
  { store: { db } }: Pick<Services, "store">,
  name: string,
): Promise<BatchDocument> {
  const batch = await unlessTableMissing(() => findBatch(db, name));
  if (batch === undefined)
    throw notPossible(`There is no batch ${name}.`, "Start one: longhaul batch FILE --name NAME");
  const rows = await listItems(db, name);
  const chosen = chosenAttempt(batch);
  return {
    ...summaryOf(batch, await batchFigures(db, name)),
    items: rows
      .filter(({ ordinal }) => ordinal > 0)
      .map((row) => ({
        id: row.itemId,
        status: row.status === "running" && row.sessionStatus === "waiting" ? "waiting" : row.status,
        session: row.status === "pending" ? null : row.sessionId,
        attempt: row.attempt,
        failure: row.failure,
        task: row.task ?? "",
      })),
    chosen,
  };
}

/** Batches in a list for people. */
const MAX_LISTED = 100;

/** Running batches first, then the newest; at most 100. */
export async function readBatches({ store: { db } }: Pick<Services, "store">): Promise<BatchSummary[]> {
  const rows = (await unlessTableMissing(() => listBatches(db, MAX_LISTED))) ?? [];
  return Promise.all(rows.map(async (row) => summaryOf(row, await batchFigures(db, row.id))));
}

/** A client may have stored it a moment ago; it starts the run next. */
const STARTING_MS = 60_000;

/** The same with the status `lost` if nothing works on it any more: its run was ended in Temporal, or never began. */
export async function withRun<T extends BatchSummary>(services: Services, document: T): Promise<T> {
  if (document.endedAt !== null) return document;
  const status = (await describeRun(services, batchWorkflowId(document.name)))?.status;
  const isStarting = status === "GONE" && Date.now() - Date.parse(document.createdAt) < STARTING_MS;
  const runs = [undefined, "RUNNING", "CONTINUED_AS_NEW", "PAUSED"].includes(status);
  return runs || isStarting ? document : { ...document, status: "lost" };
}

function summaryOf(batch: Batch, figures: BatchFigures): BatchSummary {
  const { id: name, status, concurrency, stopAfter, maxCostUsd } = batch;
  return {
    name,
    status,
    ...figures,
    concurrency,
    stopAfter,
    maxCostUsd,
    createdAt: batch.createdAt.toISOString(),
    endedAt: batch.endedAt?.toISOString() ?? null,
  };
}

/** @param figures the document's own figures */
export function figuresText(figures: BatchFigures): string {
  return `${batchLine(figures)}${figures.costUsd > 0 ? `, ${dollars(figures.costUsd)}` : ""}`;
}

/** A batch as one line. */
export const summaryText = (batch: BatchSummary, style: Style): string =>
  `${style("bold", batch.name)}  ${batch.status}: ${figuresText(batch)}${batch.status === "lost" ? LOST : ""}`;

const LOST = " (stopped: Temporal no longer runs it; run the same file again for the rest)";

export function batchText(document: BatchDocument, style: Style, columns: number): string {
  const head = summaryText(document, style);
  const rows = document.items.map(({ id, status, failure, session, task }) => [
    id,
    failure === null ? status : `${status} (${failure})`,
    session ?? "–",
    task,
  ]);
  const { chosen } = document;
  return [
    head,
    ...table(rows, columns - 2).map((line) => `  ${line}`.trimEnd()),
    ...(chosen === undefined ? [] : [`  ${chosenText(chosen)}`]),
  ].join("\n");
}

/** Which attempt was chosen, and what set it apart. */
function chosenText({ number, sessionId, outcome, why, isUnverified }: ChosenAttempt): string {
  const mark = isUnverified === true ? `, not verified (${outcome})` : "";
  return `chosen: attempt ${number} (${sessionId})${mark}: ${why}`;
}

const CODES: Readonly<Record<string, ExitCode>> = {
  completed: exitCodes.completed,
  stopped: exitCodes.limit,
  cancelled: exitCodes.cancelled,
};

/** `running` means that the outcome is unknown. */
export const batchExitCode = (status: string): ExitCode => CODES[status] ?? exitCodes.failed;

const POLL_MS = 1_000;
/** Number of polls between checks whether the batch's run still exists in Temporal. */
const DESCRIBE_EVERY = 5;

/** @returns the batch once it or its run has ended; undefined if the person left with Ctrl-C */
export async function followBatch(
  services: Services,
  name: string,
  output: Output,
): Promise<BatchDocument | undefined> {
  const detach = new AbortController();
  const onSignal = () => detach.abort();
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  const show = progress(output);
  try {
    for (let poll = 1; !detach.signal.aborted; poll += 1) {
      const document = await readUnlessAway(services, name, output);
      if (document !== undefined) {
        show.update(document);
        if (document.endedAt !== null) return document;
        if (poll % DESCRIBE_EVERY === 0 && (await isGone(services, name)))
          return await readLast(services, name, output);
      }
      await sleep(POLL_MS, undefined, { signal: detach.signal }).catch(() => undefined);
    }
    return undefined;
  } finally {
    show.close();
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  }
}

/** Reads the batch again after its run is gone: the run may have stored the end just before. */
async function readLast(services: Services, name: string, output: Output): Promise<BatchDocument> {
  const last = await readBatch(services, name);
  if (last.endedAt === null)
    output.note(
      `The run of ${name} was ended in Temporal; the sessions that had begun continue. Start the batch again for the rest.\n`,
    );
  return last;
}

/** @returns undefined while Postgres is away: the batch continues without us */
async function readUnlessAway(
  services: Services,
  name: string,
  output: Output,
): Promise<BatchDocument | undefined> {
  try {
    return await readBatch(services, name);
  } catch (error) {
    if (error instanceof ClientError) throw error;
    output.note(
      `Postgres does not answer (${harmlessLine(plainReason(error), 200)}); the batch continues; trying again …\n`,
    );
    return undefined;
  }
}

async function isGone(services: Services, name: string): Promise<boolean> {
  const status = (await describeRun(services, batchWorkflowId(name)))?.status;
  return status !== undefined && status !== "RUNNING" && status !== "CONTINUED_AS_NEW";
}

interface Progress {
  update(document: BatchDocument): void;
  close(): void;
}

function progress(output: Output): Progress {
  const shownStatuses = new Map<string, string>();
  const { terminal } = output;
  const area = output.isLive && terminal ? new LiveArea(output.draw, terminal) : undefined;
  const print = (line: string) => (area ? area.print(`${line}\n`) : output.show(`${line}\n`));
  let first = true;
  return {
    update(document) {
      for (const item of document.items) {
        const line = itemLine(item, output);
        if (line === undefined || shownStatuses.get(item.id) === item.status) continue;
        shownStatuses.set(item.id, item.status);
        // Items that ended before the watch began are only counted.
        if (!first || item.status === "waiting") print(line);
      }
      first = false;
      const names = document.items.flatMap(({ id, status }) => (status === "running" ? [id] : []));
      const running = names.length === 0 ? "" : ` · ${names.join(", ")}`;
      area?.show([harmlessLine(`${figuresText(document)}${running}`, (terminal?.().columns ?? 80) - 1)]);
    },
    close: () => area?.show([]),
  };
}

/** @returns undefined for an item whose state is not worth a line */
function itemLine({ id, status, failure, session, task }: BatchItemDocument, { style, columns }: Output) {
  const about = harmlessLine(task, Math.max(20, columns - 60));
  if (status === "completed") return `${style("green", "✓")} ${id}  ${about}`;
  if (status === "waiting")
    return `${style("yellow", "?")} ${id}  waits for a person: longhaul questions ${shellWord(session ?? "")}`;
  if (status === "pending" || status === "running") return undefined;
  return `${style("red", "✗")} ${id}  ${status}${failure === null ? "" : ` (${failure})`}: longhaul status ${shellWord(session ?? "")}`;
}
