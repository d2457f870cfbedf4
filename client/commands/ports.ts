/** `longhaul ports` and `forward`: the servers in a session's sandbox. */
import type { Command } from "commander";
import { harmlessLine, shellWord } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { parseSettings, SESSION, withSession } from "../sessions/with-session.ts";
import { once } from "node:events";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { sandboxServices } from "../../activities/config/service-settings.ts";
import { type ExitCode, exitCodes } from "../console/errors.ts";
import { cannotListen } from "../serve/local-server.ts";
import { portNumber } from "../sessions/flag-values.ts";

/** `longhaul ports ID`: what listens in a session's sandbox. */
export function portsCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withSession(reference, async ({ store }, row) => {
      const { listeningPorts, sandboxHere } = await import("../setup/local-containers.ts");
      const ports = await listeningPorts(
        await sandboxHere(store, row.id),
        servicesByPort(parseSettings(row)),
      );
      if (flags.json) return output.json(ports, 2);
      if (ports.length === 0) return output.note(`Nothing listens in the sandbox of ${row.id}.\n`);
      for (const { port, address, pid, process, service } of ports) {
        const program = process === null ? "" : `  ${harmlessLine(process, 40)} (${pid})`;
        const holder = service === undefined ? program : `  service ${harmlessLine(service, 40)}`;
        output.result(`${String(port).padStart(5)}  ${address}${holder}\n`);
      }
      output.note(`To reach one from here: longhaul forward ${shellWord(row.id)} ${ports[0]?.port}\n`);
    });
}

/** Names by port, of those that the settings say. */
function servicesByPort({ sandbox }: RunConfig): ReadonlyMap<number, string> {
  const services = Object.entries(sandboxServices(sandbox));
  return new Map(services.flatMap(([name, { ports }]) => ports.map((port) => [port, name] as const)));
}

/** `longhaul forward ID PORT`: a port of this machine that leads to a server in a session's sandbox. */
export function forwardCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("<port>", "the server's port in the sandbox", portNumber(1))
    .option("--port <n>", "the port of this machine; default: the same if it is free", portNumber(1));
  return (reference: string, port: number, flags: { readonly port?: number }) =>
    withSession(reference, async ({ store }, row): Promise<ExitCode> => {
      const { forwardPort, sandboxHere } = await import("../setup/local-containers.ts");
      const container = await sandboxHere(store, row.id);
      const say = (reason: string) =>
        output.note(`! port ${port} of ${row.id} did not answer: ${harmlessLine(reason, 200)}\n`);
      const open = (localPort: number) => forwardPort(container, { port, localPort }, say);
      const forward = await open(flags.port ?? port).catch((error: unknown) => {
        if (flags.port === undefined) return open(0);
        throw cannotListen(error, `Port ${flags.port} of this machine`, "--port");
      });
      output.result(`127.0.0.1:${forward.localPort}\n`);
      output.note(`leads to port ${port} in the sandbox of ${row.id}; Ctrl-C ends it\n`);
      await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
      forward.close();
      return exitCodes.interrupted;
    });
}
