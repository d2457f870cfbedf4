/** What the commands share that serve HTTP on this machine until they are stopped: how they listen, and whom they answer. */
import { randomBytes, createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { type ExitCode, exitCodes, notPossible } from "../console/errors.ts";
import type { IncomingHttpHeaders } from "node:http";

const TOKEN_BYTES = 24;

export const newToken = () => randomBytes(TOKEN_BYTES).toString("base64url");

const LISTEN_TROUBLES: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program uses it",
  EADDRNOTAVAIL: "this machine has no such address",
  ENOTFOUND: "there is no such address",
  EACCES: "you have no permission, which ports below 1024 may require",
};

/** The error of a server that cannot listen at `place`. */
export function cannotListen(error: unknown, address: string, flags: string) {
  const { code = "", message } = error as NodeJS.ErrnoException;
  const why = LISTEN_TROUBLES[code] ?? (code || message);
  return notPossible(`${address} cannot be opened: ${why}.`, `Choose another ${flags}.`);
}

export async function untilStopped(served: { close(): Promise<void> }): Promise<ExitCode> {
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await served.close();
  return exitCodes.interrupted;
}

/** Requests of another site's page, or without a token, are refused. */
export interface Guard {
  /** The user of each token; undefined for the person who started the server. */
  readonly tokens: ReadonlyMap<string, string | undefined>;
  /** `host:port` as a browser may name the server: other names may come from DNS rebinding. */
  readonly hosts: ReadonlySet<string>;
  /** `https://host` of proxies in front of it, as the person who started it named them. */
  readonly origins: ReadonlySet<string>;
}

export interface HttpRefusal {
  readonly status: 400 | 401 | 403 | 404 | 405;
  readonly message: string;
}

/** Also for the page, which has no secrets but must not be framed under a rebound name. */
export function refuseOrigin(
  { hosts, origins }: Guard,
  headers: IncomingHttpHeaders,
): HttpRefusal | undefined {
  const { host, origin } = headers;
  if (host === undefined || !hosts.has(host.toLowerCase()))
    return { status: 403, message: "The Host header does not name this server." };
  if (origin === undefined || origins.has(origin)) return undefined;
  if (!(origin.startsWith("http://") && hosts.has(origin.slice("http://".length))))
    return { status: 403, message: "The Origin header names another site." };
  return undefined;
}

/** The user of a request's token. */
export function checkBearer(
  { tokens }: Guard,
  { authorization = "" }: IncomingHttpHeaders,
): { readonly user: string | undefined } | HttpRefusal {
  const [, sentToken = ""] = /^Bearer (\S+)$/i.exec(authorization) ?? [];
  // All are compared, so that the time does not reveal which one matches.
  const [found] = [...tokens].filter(([token]) => timingSafeEqual(digest(sentToken), digest(token)));
  if (found !== undefined) return { user: found[1] };
  return {
    status: 401,
    message: "Send the token that `longhaul serve` printed: Authorization: Bearer TOKEN",
  };
}

/** Equal lengths, which the comparison requires. */
const digest = (text: string) => createHash("sha256").update(text).digest();
