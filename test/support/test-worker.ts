/** A worker in the test's own process, with the product's options. */
import { Worker, type WorkerOptions } from "@temporalio/worker";
import { inject } from "vitest";
import { readWorkerConfig } from "../../worker/config.ts";
import { workerOptions, type WorkerParts } from "../../worker/worker-options.ts";

export interface TestWorkerOptions extends Omit<WorkerParts, "config" | "namespace" | "bundle"> {
  readonly taskQueue: string;
  /** Further variables of the worker, as its process would have them. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Serves one queue. The caller runs it and shuts it down. */
export function createTestWorker({ taskQueue, environment, ...parts }: TestWorkerOptions): Promise<Worker> {
  const config = readWorkerConfig({
    DATABASE_URL: "postgres://unused",
    LONGHAUL_TASK_QUEUE: taskQueue,
    LONGHAUL_SHUTDOWN_GRACE_MS: "100",
    ...environment,
  });
  const bundle = { codePath: inject("workflowBundle") };
  const [options] = workerOptions({ config, namespace: "default", bundle, ...parts });
  return Worker.create(options as WorkerOptions);
}
