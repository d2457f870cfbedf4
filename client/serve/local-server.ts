/** Shared by the commands that serve HTTP on this machine until they are stopped. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type ExitCode, exitCodes, notPossible } from "../console/errors.ts";

const TOKEN_BYTES = 24;

export const newToken = () => randomBytes(TOKEN_BYTES).toString("base64url");

/** The error of a server that cannot listen at `place`. */
export function cannotListen(error: unknown, place: string, flags: string) {
  const { code, message } = error as NodeJS.ErrnoException;
  return notPossible(`${place} cannot be opened (${code ?? message}).`, `Choose another ${flags}.`);
}

export async function untilStopped(served: { close(): Promise<void> }): Promise<ExitCode> {
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await served.close();
  return exitCodes.interrupted;
}
