/** The worker as a process: what compose, `npm start` and a cluster run. Exit codes as the client's: 0, 1, 2, 4. */
import { isQueryError, reasonOf } from "../activities/contract/errors.ts";
import { type WorkerConfig, readWorkerConfig } from "./config.ts";
import { ServiceMissing } from "../temporal/service-missing.ts";
import { runWorker } from "./run-worker.ts";

async function main(): Promise<number> {
  let config: WorkerConfig;
  try {
    config = readWorkerConfig();
  } catch (error) {
    return report(error, 2);
  }
  try {
    await runWorker(config);
    return 0;
  } catch (error) {
    return report(error, 1);
  }
}

function report(error: unknown, code: number): number {
  if (error instanceof ServiceMissing) {
    process.stderr.write(`${error.message}\n`);
    return 4;
  }
  const reason = reasonOf(error);
  // The stack of a query error begins with its statement.
  const stack = (isQueryError(error) ? undefined : (error as Error).stack) ?? reason;
  process.stderr.write(`${code === 2 ? reason : stack}\n`);
  return code;
}

// Ends explicitly: a hanging handle must not keep a drained worker alive.
process.exit(await main());
