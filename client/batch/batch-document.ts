/** A batch as people and scripts see it. */
import { batchWorkflowId, type BatchFigures, batchLine } from "../../activities/contract/batch.ts";
import {
  batchFigures,
  findBatch,
  listBatches,
  listItems,
  type Batch,
} from "../../activities/store/batches.ts";
import type { Services } from "../connect/connection.ts";
import { describeRun } from "../connect/describe-run.ts";
import { exitCodes, notPossible, type ExitCode } from "../console/errors.ts";
import { dollars, table } from "../console/format.ts";
import type { Style } from "../console/output.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";

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
}

export interface BatchItemDocument {
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
  };
}

/** Batches in a list for people. Source: ours. */
const MAX_LISTED = 100;

/** Running batches first, then the newest; at most 100. */
export async function readBatches({ store: { db } }: Pick<Services, "store">): Promise<BatchSummary[]> {
  const rows = (await unlessTableMissing(() => listBatches(db, MAX_LISTED))) ?? [];
  return Promise.all(rows.map(async (row) => summaryOf(row, await batchFigures(db, row.id))));
}

/** A client may have stored it a moment ago; it starts the run next. */
const STARTING_MS = 60_000;

/** The same with the status `lost` if nothing works on it any more: its run was ended in Temporal, or never began. */
export async function withRun<T extends BatchSummary>({ temporal }: Services, document: T): Promise<T> {
  if (document.endedAt !== null) return document;
  const status = (await describeRun(temporal, batchWorkflowId(document.name)))?.status;
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
  return [head, ...table(rows, columns - 2).map((line) => `  ${line}`.trimEnd())].join("\n");
}

const CODES: Readonly<Record<string, ExitCode>> = {
  completed: exitCodes.completed,
  stopped: exitCodes.limit,
  cancelled: exitCodes.cancelled,
};

/** `running` means that the outcome is unknown. */
export const batchExitCode = (status: string): ExitCode => CODES[status] ?? exitCodes.failed;
