/** Shows a batch until it ends: a line for each item that ends, and the totals. */
import { setTimeout as sleep } from "node:timers/promises";
import { batchWorkflowId } from "../../activities/contract/batch.ts";
import { plainReason } from "../../temporal/plain-reason.ts";
import type { Services } from "../connect/connection.ts";
import { describeRun } from "../connect/describe-run.ts";
import { ClientError } from "../console/errors.ts";
import { oneLine } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { LiveArea } from "../screen/live-area.ts";
import { figuresText, readBatch, type BatchDocument, type BatchItemDocument } from "./batch-document.ts";

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
      `Postgres does not answer (${oneLine(plainReason(error), 200)}); the batch continues; trying again …\n`,
    );
    return undefined;
  }
}

async function isGone(services: Services, name: string): Promise<boolean> {
  const status = (await describeRun(services.temporal, batchWorkflowId(name)))?.status;
  return status !== undefined && status !== "RUNNING" && status !== "CONTINUED_AS_NEW";
}

interface Progress {
  update(document: BatchDocument): void;
  close(): void;
}

function progress(output: Output): Progress {
  const shown = new Map<string, string>();
  const { terminal } = output;
  const area = output.isLive && terminal ? new LiveArea(output.draw, terminal) : undefined;
  const print = (line: string) => (area ? area.print(`${line}\n`) : output.show(`${line}\n`));
  let first = true;
  return {
    update(document) {
      for (const item of document.items) {
        const line = itemLine(item, output);
        if (line === undefined || shown.get(item.id) === item.status) continue;
        shown.set(item.id, item.status);
        // Items that ended before the watch began are only counted.
        if (!first || item.status === "waiting") print(line);
      }
      first = false;
      const names = document.items.flatMap(({ id, status }) => (status === "running" ? [id] : []));
      const running = names.length === 0 ? "" : ` · ${names.join(", ")}`;
      area?.show([oneLine(`${figuresText(document)}${running}`, (terminal?.().columns ?? 80) - 1)]);
    },
    close: () => area?.show([]),
  };
}

/** @returns undefined for an item whose state is not worth a line */
function itemLine({ id, status, failure, session, task }: BatchItemDocument, { style, columns }: Output) {
  const about = oneLine(task, Math.max(20, columns - 60));
  if (status === "completed") return `${style("green", "✓")} ${id}  ${about}`;
  if (status === "waiting")
    return `${style("yellow", "?")} ${id}  waits for a person: longhaul questions ${session ?? ""}`;
  if (status === "pending" || status === "running") return undefined;
  return `${style("red", "✗")} ${id}  ${status}${failure === null ? "" : ` (${failure})`}: longhaul status ${session ?? ""}`;
}
