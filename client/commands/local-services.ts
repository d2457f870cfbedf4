/** `longhaul worker`, `up`, `down`: the worker and the services of this machine. */
import type { Command } from "commander";
import type { Output } from "../console/output.ts";

/** A worker in the foreground, on the services that are there. */
export function workerCommand() {
  return async () => {
    const { runWorker } = await import("../setup/worker-process.ts");
    await runWorker();
  };
}

/** Local services and a worker in the foreground; ends them on Ctrl-C. */
export function upCommand(_command: Command, output: Output) {
  return async () => {
    const { up } = await import("../setup/up.ts");
    await up({ say: (line) => output.note(`${line}\n`) });
  };
}

/** Ends the worker and the services that were brought up; data stays. */
export function downCommand(_command: Command, output: Output) {
  return async () => {
    const { down } = await import("../setup/up.ts");
    await down({ say: (line) => output.note(`${line}\n`) });
  };
}
