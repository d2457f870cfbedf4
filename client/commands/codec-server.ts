/** `longhaul codec-server`: decrypts payloads for Temporal's Web UI. */
import type { Command } from "commander";
import { parseCodecKeys, createCodec } from "../../temporal/codec.ts";
import { type ExitCode, usageError } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { portNumber } from "../sessions/flag-values.ts";
import { findServices, settingOf } from "../setup/services.ts";
import { cannotListen, newToken, untilStopped } from "../serve/local-server.ts";

export function codecServerCommand(command: Command, output: Output) {
  command
    .option("--port <n>", "port to listen on; 0 is a free one", portNumber(0), 4181)
    .option("--origin <url>", "address of the Web UI in the browser; default: the local one");
  return async ({ port, origin }: { readonly port: number; readonly origin?: string }): Promise<ExitCode> => {
    const keys = parseCodecKeys(settingOf("LONGHAUL_CODEC_KEYS"));
    if (keys.length === 0)
      throw usageError(
        "LONGHAUL_CODEC_KEYS is not set.",
        "Set it to the keys of the workers: id:base64,id:base64",
      );
    const token = settingOf("LONGHAUL_CODEC_TOKEN") ?? newToken();
    const { serveCodec } = await import("../serve/codec-server.ts");
    const origins = originsOf(origin ?? findServices().uiUrl);
    const serving = { codec: createCodec(keys), port, token, origins };
    const served = await serveCodec(serving).catch((error: unknown) => {
      throw cannotListen(error, `Port ${port}`, "--port");
    });
    output.result(`${served.url}/${token}\n`);
    output.note(
      `Enter it as the codec server in the Web UI (the glasses, top right). It answers pages of ${[...origins].join(" and ") || "no origin: pass --origin"}. Ctrl-C ends it.\n`,
    );
    return untilStopped(served);
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
