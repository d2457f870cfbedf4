/** `longhaul worker`: a worker in the foreground, against the services that are there. */
import { Command } from "commander";
import type { ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";

export function workerCommand(_output: Output, done: (code: ExitCode) => void): Command {
  return new Command("worker")
    .description("run a worker in the foreground until it is stopped")
    .action(async () => {
      const { findServices } = await import("../setup/services.ts");
      const { runWorker } = await import("../setup/worker-process.ts");
      done((await runWorker({ services: findServices() })) as ExitCode);
    });
}
