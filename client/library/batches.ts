/** Batches and schedules, with the same operations as the commands of these names. */
import type { BatchDocument, BatchSummary } from "../batch/batch-document.ts";
import { readBatch, readBatches, withRun } from "../batch/batch-document.ts";
import { cancelBatch, startBatch, type StartedBatch } from "../batch/start-batch.ts";
import { batchName } from "../batch/batch-file.ts";
import { prepareBatch } from "../batch/prepare-batch.ts";
import type { Services } from "../connect/connection.ts";
import { usageError } from "../console/errors.ts";
import {
  deleteSchedule,
  pauseSchedule,
  readSchedules,
  triggerSchedule,
  type ScheduleDocument,
  type Triggered,
} from "../schedules/schedules.ts";
import type { RunFlags } from "../sessions/run-flags.ts";
import type { StartOptions } from "./start-options.ts";

export type { BatchDocument, BatchSummary, ScheduleDocument, StartedBatch, Triggered };

/** Settings of all items; a line of the file overrides them. `questions` are denied by default. */
export interface BatchOptions extends Omit<StartOptions, "id" | "images" | "outputSchema"> {
  /** Default: the file's name without its extension. */
  readonly name?: string;
  /** Sessions at once; default 4. */
  readonly concurrency?: number;
  /** Nothing more is started after this many failures of one kind in a row. */
  readonly stopAfter?: number;
  /** Nothing more is started when all sessions together have cost this much. */
  readonly maxCostUsd?: number;
}

/** Many tasks, of which a few run at the same time. See docs/batch.md. */
export interface Batches {
  /** Running batches first, then the newest; at most 100. */
  list(): Promise<BatchSummary[]>;
  get(name: string): Promise<BatchDocument>;
  /** Starts a file's incomplete items (JSON lines), or attaches to the running batch. It continues without this process. */
  start(file: string, options?: BatchOptions): Promise<StartedBatch & { readonly name: string }>;
  /** Starts nothing more and cancels running sessions; resolves when all have ended. */
  cancel(name: string): Promise<BatchDocument>;
}

/** Sessions at fixed times. They are created with `longhaul schedule create`. */
export interface Schedules {
  list(): Promise<ScheduleDocument[]>;
  pause(name: string): Promise<void>;
  resume(name: string): Promise<void>;
  /** Starts a session now, by the schedule's rules. */
  run(name: string): Promise<Triggered>;
  /** Deletes the schedule but keeps its sessions. */
  delete(name: string): Promise<void>;
}

/** The same limit as the command's. Source: a batch's workflow state stays small. */
const MAX_CONCURRENCY = 100;
const CONCURRENCY = 4;

export function batchesOver(
  services: Services,
  { flagsOf, onNote }: { flagsOf: (options: StartOptions) => RunFlags; onNote: (line: string) => void },
): Batches {
  return {
    list: async () => Promise.all((await readBatches(services)).map((batch) => withRun(services, batch))),
    get: async (name) => withRun(services, await readBatch(services, name)),
    start: async (
      file,
      { name: givenName, concurrency = CONCURRENCY, stopAfter, maxCostUsd, ...all } = {},
    ) => {
      if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > MAX_CONCURRENCY)
        throw usageError(`concurrency must be an integer from 1 to ${MAX_CONCURRENCY}.`);
      const name = batchName(givenName, file);
      const ofAll = flagsOf(maxCostUsd === undefined ? all : { ...all, maxCostUsd });
      const { items } = await prepareBatch(file, ofAll, onNote);
      return { name, ...(await startBatch(services, { name, items, concurrency, stopAfter, maxCostUsd })) };
    },
    cancel: (name) => cancelBatch(services, name),
  };
}

export function schedulesOver(services: Services): Schedules {
  return {
    list: () => readSchedules(services),
    pause: (name) => pauseSchedule(services, name, true),
    resume: (name) => pauseSchedule(services, name, false),
    run: (name) => triggerSchedule(services, name),
    delete: (name) => deleteSchedule(services, name),
  };
}
