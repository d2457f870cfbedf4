/** Access to the server: requests of another site's page, or without a token, are refused. Pure except for the comparison's salt. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export interface Guard {
  /** The user of each token; undefined for the person who started the server. */
  readonly tokens: ReadonlyMap<string, string | undefined>;
  /** `host:port` as a browser may name the server: other names may come from DNS rebinding. */
  readonly hosts: ReadonlySet<string>;
  /** `https://host` of proxies in front of it, as the person who started it named them. */
  readonly origins: ReadonlySet<string>;
}

export interface Refusal {
  readonly status: 400 | 401 | 403 | 404 | 405;
  readonly message: string;
}

/** Also for the page, which has no secrets but must not be framed under a rebound name. */
export function refuseOrigin({ hosts, origins }: Guard, headers: IncomingHttpHeaders): Refusal | undefined {
  const { host, origin } = headers;
  if (host === undefined || !hosts.has(host.toLowerCase()))
    return { status: 403, message: "The Host header does not name this server." };
  if (origin === undefined || origins.has(origin)) return undefined;
  if (!(origin.startsWith("http://") && hosts.has(origin.slice("http://".length))))
    return { status: 403, message: "The Origin header names another site." };
  return undefined;
}

/** The user of a request's token. */
export function bearerOf(
  { tokens }: Guard,
  { authorization = "" }: IncomingHttpHeaders,
): { readonly user: string | undefined } | Refusal {
  const [, given = ""] = /^Bearer (\S+)$/i.exec(authorization) ?? [];
  // All are compared, so that the time does not reveal which one matches.
  const [found] = [...tokens].filter(([token]) => timingSafeEqual(digest(given), digest(token)));
  if (found !== undefined) return { user: found[1] };
  return {
    status: 401,
    message: "Send the token that `longhaul serve` printed: Authorization: Bearer TOKEN",
  };
}

/** Equal lengths, which the comparison requires. */
const digest = (text: string) => createHash("sha256").update(text).digest();
