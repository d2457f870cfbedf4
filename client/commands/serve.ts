/** `longhaul serve`: sessions over HTTP, with a page that shows them live. */
import { inspect } from "node:util";
import { InvalidArgumentError, type Command } from "commander";
import { clientSanitizer, serveTokens } from "../config/config.ts";
import { warnWithoutWorker } from "../connect/readiness.ts";
import type { ExitCode } from "../console/errors.ts";
import { listNames } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { portNumber } from "../sessions/flag-values.ts";
import { withServices } from "../sessions/with-session.ts";
import { cannotListen, newToken, untilStopped } from "../serve/local-server.ts";

interface Flags {
  readonly port: number;
  readonly host: string;
  readonly behind: readonly string[];
}

/** @throws InvalidArgumentError for anything but a scheme, a host and a port */
function proxyOrigin(value: string, earlier: readonly string[]): string[] {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || `${url.origin}/` !== url.href)
    throw new InvalidArgumentError("Expected such as https://longhaul.example.com");
  return [...earlier, url.origin];
}

export function serveCommand(command: Command, output: Output) {
  command
    .option("--port <n>", "port to listen on; 0 is a free one", portNumber(0), 4180)
    .option(
      "--host <address>",
      "address to listen on; any but this machine's own lets others reach the page",
      "127.0.0.1",
    );
  command.option(
    "--behind <origin>",
    "address of a proxy in front of it, such as https://longhaul.example.com; repeatable",
    proxyOrigin,
    [],
  );
  return ({ port, host, behind }: Flags) => {
    const namedTokens = serveTokens();
    return withServices(async (services): Promise<ExitCode> => {
      await warnWithoutWorker(services, output);
      const [{ libraryOver }, { SharedListener }, { serve }] = await Promise.all([
        import("../library/library.ts"),
        import("../watch/shared-listener.ts"),
        import("../serve/server.ts"),
      ]);
      const { clean } = clientSanitizer();
      const token = newToken();
      const listener = new SharedListener(services.store);
      const clientFor = (user: string | undefined) =>
        libraryOver({ ...services, user }, { onNote: output.note, listener });
      const ownClient = clientFor(services.user);
      const others = new Map([...namedTokens.values()].map((user) => [user, clientFor(user)]));
      const clientOf = (user: string | undefined) =>
        user === undefined ? ownClient : (others.get(user) ?? ownClient);
      const tokens = new Map<string, string | undefined>([...namedTokens, [token, undefined]]);
      const onFault = (error: unknown) => output.note(`${clean(inspect(error, { depth: 4 }))}\n`);
      const served = await serve({ clientOf, host, port, tokens, behind, onFault }).catch(
        (error: unknown) => {
          throw cannotListen(error, `${host}:${port}`, "--port or --host");
        },
      );
      output.result(`${served.url}/#${token}\n`);
      output.note(
        "Open it in a browser, or use the API with the part after # as the bearer token. Ctrl-C ends the server; sessions continue.\n",
      );
      if (served.elsewhere.length > 0)
        output.note(
          `Other machines reach it at ${listNames(served.elsewhere)}, with the same part after #.\n` +
            "It is plain HTTP: whoever can read the network's traffic can read the token.\n",
        );
      return untilStopped(served);
    });
  };
}
