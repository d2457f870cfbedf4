/** `longhaul ports ID`: what listens in a session's sandbox. */
import type { Command } from "commander";
import { oneLine } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";

export function portsCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withSession(reference, async ({ store }, row) => {
      const { listeningPorts, sandboxHere } = await import("../setup/sandbox-ports.ts");
      const ports = await listeningPorts(await sandboxHere(store, row.id));
      if (flags.json) return output.json(ports, 2);
      if (ports.length === 0) return output.note(`Nothing listens in the sandbox of ${row.id}.\n`);
      for (const { port, address, pid, process } of ports) {
        const holder = process === null ? "" : `  ${oneLine(process, 40)} (${pid})`;
        output.result(`${String(port).padStart(5)}  ${address}${holder}\n`);
      }
      output.note(`To reach one from here: longhaul forward ${row.id} ${ports[0]?.port}\n`);
    });
}
