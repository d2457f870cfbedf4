/** `longhaul worker`: a worker in the foreground, against the services that are there. */
import { Command } from "commander";
import type { ExitCode } from "../errors.ts";
import type { Output } from "../output.ts";

export function workerCommand(_output: Output, done: (code: ExitCode) => void): Command {
  return new Command("worker")
    .description("run a worker in the foreground until it is stopped")
    .action(async () => {
      const { findServices } = await import("../../worker/local/services.ts");
      const { runWorker } = await import("../../worker/local/worker-process.ts");
      done((await runWorker({ services: findServices() })) as ExitCode);
    });
}
