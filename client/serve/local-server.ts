/** Shared by the commands that serve HTTP on this machine until they are stopped. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type ExitCode, exitCodes, notPossible } from "../console/errors.ts";

const TOKEN_BYTES = 24;

export const newToken = () => randomBytes(TOKEN_BYTES).toString("base64url");

const LISTEN_TROUBLES: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program uses it",
  EADDRNOTAVAIL: "this machine has no such address",
  ENOTFOUND: "there is no such address",
  EACCES: "you have no permission, which ports below 1024 may require",
};

/** The error of a server that cannot listen at `place`. */
export function cannotListen(error: unknown, place: string, flags: string) {
  const { code = "", message } = error as NodeJS.ErrnoException;
  const why = LISTEN_TROUBLES[code] ?? (code || message);
  return notPossible(`${place} cannot be opened: ${why}.`, `Choose another ${flags}.`);
}

export async function untilStopped(served: { close(): Promise<void> }): Promise<ExitCode> {
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await served.close();
  return exitCodes.interrupted;
}
