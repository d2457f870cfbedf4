/** `longhaul serve` and `codec-server`: HTTP servers on this machine, until they are stopped. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { inspect } from "node:util";
import type { Command } from "commander";
import { codecKeysOf, createCodec } from "../../worker/connect/codec.ts";
import { clientSanitizer, serveTokens } from "../config/config.ts";
import { tellNoWorker } from "../connect/no-worker.ts";
import { type ExitCode, exitCodes, notPossible, usageError } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { portNumber } from "../sessions/flag-values.ts";
import { withServices } from "../sessions/with-session.ts";
import { findServices, settingOf } from "../setup/services.ts";

const TOKEN_BYTES = 24;

export function serveCommand(command: Command, output: Output) {
  command
    .option("--port <n>", "port to listen on; 0 is a free one", portNumber(0), 4180)
    .option(
      "--host <address>",
      "address to listen on; any but this machine's own lets others reach the page",
      "127.0.0.1",
    );
  return ({ port, host }: { readonly port: number; readonly host: string }) => {
    const named = serveTokens();
    return withServices(async (services): Promise<ExitCode> => {
      await tellNoWorker(services, output);
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
      const own = clientFor(services.user);
      const others = new Map([...named.values()].map((user) => [user, clientFor(user)]));
      const clientOf = (user: string | undefined) => (user === undefined ? own : (others.get(user) ?? own));
      const tokens = new Map<string, string | undefined>([...named, [token, undefined]]);
      const onFault = (error: unknown) => output.note(`${clean(inspect(error, { depth: 4 }))}\n`);
      const served = await serve({ clientOf, host, port, tokens, onFault }).catch((error: unknown) => {
        throw closedTo(error, `${host}:${port}`, "--port or --host");
      });
      output.result(`${served.url}/#${token}\n`);
      output.note(
        "Open it, or use the API with the part after # as bearer token; Ctrl-C ends the server; sessions continue.\n",
      );
      return untilStopped(served);
    });
  };
}

export function codecServerCommand(command: Command, output: Output) {
  command
    .option("--port <n>", "port to listen on; 0 is a free one", portNumber(0), 4181)
    .option("--origin <url>", "address of the Web UI in the browser; default: the local one");
  return async ({ port, origin }: { readonly port: number; readonly origin?: string }): Promise<ExitCode> => {
    const keys = codecKeysOf(settingOf("LONGHAUL_CODEC_KEYS"));
    if (keys.length === 0)
      throw usageError(
        "LONGHAUL_CODEC_KEYS is not set.",
        "Give it the keys of the workers: id:base64,id:base64",
      );
    const token = settingOf("LONGHAUL_CODEC_TOKEN") ?? newToken();
    const { serveCodec } = await import("../serve/codec-server.ts");
    const origins = originsOf(origin ?? findServices().uiUrl);
    const serving = { codec: createCodec(keys), port, token, origins };
    const served = await serveCodec(serving).catch((error: unknown) => {
      throw closedTo(error, `Port ${port}`, "--port");
    });
    output.result(`${served.url}/${token}\n`);
    output.note(
      `Enter it as codec server in the Web UI (the glasses, top right), for pages of ${[...origins].join(" and ") || "no origin: pass --origin"}. Ctrl-C ends it.\n`,
    );
    return untilStopped(served);
  };
}

const newToken = () => randomBytes(TOKEN_BYTES).toString("base64url");

/** Why a server does not listen at a place. */
function closedTo(error: unknown, place: string, flags: string) {
  const { code, message } = error as NodeJS.ErrnoException;
  return notPossible(`${place} cannot be opened (${code ?? message}).`, `Choose another ${flags}.`);
}

async function untilStopped(served: { close(): Promise<void> }): Promise<ExitCode> {
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await served.close();
  return exitCodes.interrupted;
}

/** A browser on this machine uses either name. */
function originsOf(url: string | undefined): Set<string> {
  if (url === undefined) return new Set();
  const { origin } = new URL(url);
  return new Set([
    origin,
    origin.replace("//127.0.0.1", "//localhost"),
    origin.replace("//localhost", "//127.0.0.1"),
  ]);
}
