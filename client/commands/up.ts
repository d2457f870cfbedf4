/** `longhaul up`: local services and a worker in the foreground; ends them on Ctrl-C. */
import { Command } from "commander";
import type { ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";

export function upCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("up")
    .description("bring up local services and a worker in the foreground; Ctrl-C ends them")
    .action(async () => {
      const { up } = await import("../setup/up.ts");
      done((await up({ say: (line) => output.note(`${line}\n`) })) as ExitCode);
    });
}
