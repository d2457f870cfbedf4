/** `longhaul serve`: sessions over HTTP, and a page that shows them, until it is stopped. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { inspect } from "node:util";
import { InvalidArgumentError, type Command } from "commander";
import { clientSanitizer, serveTokens } from "../config/config.ts";
import { tellNoWorker } from "../connect/no-worker.ts";
import { type ExitCode, exitCodes, notPossible } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { withServices } from "../sessions/with-session.ts";

const TOKEN_BYTES = 24;
const MAX_PORT = 65_535;

interface ServeFlags {
  readonly port: number;
  readonly host: string;
}

export function serveCommand(command: Command, output: Output) {
  command
    .option("--port <n>", "port to listen on; 0 is a free one", portOrFree, 4180)
    .option(
      "--host <address>",
      "address to listen on; any but this machine's own lets others reach the page",
      "127.0.0.1",
    );
  return ({ port, host }: ServeFlags) => {
    const named = serveTokens();
    return withServices(async (services): Promise<ExitCode> => {
      await tellNoWorker(services, output);
      const [{ libraryOver }, { SharedListener }, { serve }] = await Promise.all([
        import("../library/library.ts"),
        import("../watch/shared-listener.ts"),
        import("../serve/server.ts"),
      ]);
      const { clean } = clientSanitizer();
      const token = randomBytes(TOKEN_BYTES).toString("base64url");
      const listener = new SharedListener(services.store);
      const clientFor = (user: string | undefined) =>
        libraryOver({ ...services, user }, { onNote: output.note, listener });
      const own = clientFor(services.user);
      const others = new Map([...named.values()].map((user) => [user, clientFor(user)]));
      const clientOf = (user: string | undefined) => (user === undefined ? own : (others.get(user) ?? own));
      const tokens = new Map<string, string | undefined>([...named, [token, undefined]]);
      const onFault = (error: unknown) => output.note(`${clean(inspect(error, { depth: 4 }))}\n`);
      const served = await serve({ clientOf, host, port, tokens, onFault }).catch(
        (error: NodeJS.ErrnoException) => {
          throw notPossible(
            `${host}:${port} cannot be opened (${error.code ?? error.message}).`,
            "Choose another --port or --host.",
          );
        },
      );
      output.result(`${served.url}/#${token}\n`);
      output.note(
        "Open it, or use the API with the part after # as bearer token; Ctrl-C ends the server; sessions continue.\n",
      );
      await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
      await served.close();
      return exitCodes.interrupted;
    });
  };
}

export function portOrFree(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > MAX_PORT)
    throw new InvalidArgumentError(`Expected a port from 0 to ${MAX_PORT}.`);
  return value;
}
