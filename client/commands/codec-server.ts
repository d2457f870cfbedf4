/** `longhaul codec-server`: decrypts Temporal's payloads for its Web UI, until it is stopped. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Command } from "commander";
import { codecKeysOf, createCodec } from "../../worker/connect/codec.ts";
import { type ExitCode, exitCodes, notPossible, usageError } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { findServices, settingOf } from "../setup/services.ts";
import { portOrFree } from "./serve.ts";

const TOKEN_BYTES = 24;

interface CodecServerFlags {
  readonly port: number;
  readonly origin?: string;
}

export function codecServerCommand(command: Command, output: Output) {
  command
    .option("--port <n>", "port to listen on; 0 is a free one", portOrFree, 4181)
    .option("--origin <url>", "address of the Web UI in the browser; default: the local one");
  return async ({ port, origin }: CodecServerFlags): Promise<ExitCode> => {
    const keys = codecKeysOf(settingOf("LONGHAUL_CODEC_KEYS"));
    if (keys.length === 0)
      throw usageError(
        "LONGHAUL_CODEC_KEYS is not set.",
        "Give it the keys of the workers: id:base64,id:base64",
      );
    const token = settingOf("LONGHAUL_CODEC_TOKEN") ?? randomBytes(TOKEN_BYTES).toString("base64url");
    const { serveCodec } = await import("../serve/codec-server.ts");
    const origins = originsOf(origin ?? findServices().uiUrl);
    const served = await serveCodec({ codec: createCodec(keys), port, token, origins }).catch(
      (error: NodeJS.ErrnoException) => {
        throw notPossible(
          `Port ${port} cannot be opened (${error.code ?? error.message}).`,
          "Choose another --port.",
        );
      },
    );
    output.result(`${served.url}/${token}\n`);
    output.note(
      `Enter it as codec server in the Web UI (the glasses, top right), for pages of ${[...origins].join(" and ") || "no origin: pass --origin"}. Ctrl-C ends it.\n`,
    );
    await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
    await served.close();
    return exitCodes.interrupted;
  };
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
