/** Who may ask the server: a page of another site, and whoever has no token, may not. Pure but for the comparison's salt. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export interface Guard {
  /** Who each token is given to; undefined for who started the server. */
  readonly tokens: ReadonlyMap<string, string | undefined>;
  /** `host:port` as a browser may name the server: others reach it by a name that was bent to this address. */
  readonly hosts: ReadonlySet<string>;
}

export interface Refusal {
  readonly status: 401 | 403;
  readonly message: string;
}

/** Also for the page, which has no secrets but may not be framed by a bent name. */
export function refuseOrigin({ hosts }: Guard, headers: IncomingHttpHeaders): Refusal | undefined {
  const { host, origin } = headers;
  if (host === undefined || !hosts.has(host.toLowerCase()))
    return { status: 403, message: "The Host header is not this server's." };
  if (origin !== undefined && !(origin.startsWith("http://") && hosts.has(origin.slice("http://".length))))
    return { status: 403, message: "The Origin header is another site's." };
  return undefined;
}

/** Whose token a request has. */
export function bearerOf(
  { tokens }: Guard,
  { authorization = "" }: IncomingHttpHeaders,
): { readonly user: string | undefined } | Refusal {
  const [, given = ""] = /^Bearer (\S+)$/i.exec(authorization) ?? [];
  // All are compared, so that the time tells nothing of which one fits.
  const [found] = [...tokens].filter(([token]) => timingSafeEqual(digest(given), digest(token)));
  if (found !== undefined) return { user: found[1] };
  return {
    status: 401,
    message: "Send the token that `longhaul serve` printed: Authorization: Bearer TOKEN",
  };
}

/** Of one length, which the comparison asks for. */
const digest = (text: string) => createHash("sha256").update(text).digest();
