/** `longhaul down`: stops the worker and the services that longhaul started; data stays. */
import type { Command } from "commander";
import type { Output } from "../console/output.ts";

export function downCommand(command: Command, output: Output) {
  command.option("--all", "also end a Temporal server that another installation on this machine uses");
  return async ({ all = false }: { readonly all?: boolean }) => {
    const { down } = await import("../setup/up.ts");
    await down({ say: (line) => output.note(`${line}\n`), all });
  };
}
