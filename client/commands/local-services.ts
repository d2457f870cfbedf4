/** `longhaul up`, `down` and `worker`: the services and the worker of this machine. */
import type { Command } from "commander";
import { exitCodes, type ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";

/** `longhaul up`: local services and a worker; in the foreground Ctrl-C ends them. */
export function upCommand(command: Command, output: Output) {
  command.option("--detach", "leave them running and return; `longhaul down` ends them");
  return async ({ detach = false }: { readonly detach?: boolean }): Promise<ExitCode> => {
    const { up } = await import("../setup/up.ts");
    const isWell = await up({ say: (line) => output.note(`${line}\n`), detach });
    return isWell ? exitCodes.completed : exitCodes.failed;
  };
}

/** `longhaul down`: stops the worker and the services that longhaul started; data stays. */
export function downCommand(command: Command, output: Output) {
  command.option("--all", "also end a Temporal server that another installation on this machine uses");
  return async ({ all = false }: { readonly all?: boolean }) => {
    const { down } = await import("../setup/up.ts");
    await down({ say: (line) => output.note(`${line}\n`), all });
  };
}

/** `longhaul worker`: a worker in the foreground, on the existing services. */
export function workerCommand() {
  return async () => {
    const { runForegroundWorker } = await import("../setup/worker-process.ts");
    await runForegroundWorker();
  };
}
