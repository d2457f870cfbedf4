/** `longhaul down`: ends the worker and the services that were brought up; data stays. */
import { Command } from "commander";
import type { ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";

export function downCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("down")
    .description("stop the local worker and services that longhaul started; data is kept")
    .action(async () => {
      const { down } = await import("../setup/up.ts");
      done((await down({ say: (line) => output.note(`${line}\n`) })) as ExitCode);
    });
}
