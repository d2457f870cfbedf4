/** `longhaul up`: local services and a worker; in the foreground Ctrl-C ends them. */
import type { Command } from "commander";
import { exitCodes, type ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";

export function upCommand(command: Command, output: Output) {
  command.option("--detach", "leave them running and return; `longhaul down` ends them");
  return async ({ detach = false }: { readonly detach?: boolean }): Promise<ExitCode> => {
    const { up } = await import("../setup/up.ts");
    const isWell = await up({ say: (line) => output.note(`${line}\n`), detach });
    return isWell ? exitCodes.completed : exitCodes.failed;
  };
}
