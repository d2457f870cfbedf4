/** The wire of an address. Pure. */
import type { IncomingMessage } from "node:http";
import type { Dialect } from "./dialects/dialect.ts";
import type { WireApi } from "./wire.ts";

export interface Route {
  readonly api: WireApi;
  /** The model, if the address contains it. */
  readonly named?: string;
  /** The address asks for a stream. */
  readonly stream?: true;
}

/** Without its query. */
export function pathOf(incoming: IncomingMessage): string {
  return (incoming.url ?? "").replace(/\?.*$/, "").replace(/\/$/, "");
}

/** Undefined for an unknown address. */
export function routeOf(incoming: IncomingMessage, dialect: Dialect): Route | undefined {
  if (incoming.method !== "POST") return undefined;
  const path = pathOf(incoming);
  const base = dialect.basePath ?? "/v1";
  const query = new URLSearchParams((incoming.url ?? "").split("?")[1]);
  for (const [name, value] of Object.entries(dialect.query ?? {}))
    if (query.get(name) !== value) return undefined;
  const gemini = /^\/v1beta\/models\/([^/:]+):(stream)?[gG]enerateContent$/.exec(path);
  if (gemini?.[1] !== undefined) {
    // Without `alt=sse` the real stream is one JSON list, which our clients do not request.
    if (gemini[2] !== undefined && query.get("alt") !== "sse") return undefined;
    return { api: "gemini", named: decodeURIComponent(gemini[1]), stream: gemini[2] ? true : undefined };
  }
  if (!path.startsWith(`${base}/`)) return undefined;
  const ends: Readonly<Record<string, WireApi>> = {
    "/responses": "responses",
    "/chat/completions": "chat",
    "/messages": "messages",
  };
  const api = ends[path.slice(base.length)];
  return api === undefined ? undefined : { api };
}
