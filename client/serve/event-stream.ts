/** A session's events as server-sent events: their ids are `seq`, by which a client resumes after a disconnect. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import type { Longhaul } from "../library/types.ts";
import { HEADERS, parse } from "./http.ts";

/** Proxies and phones drop connections that are silent for a minute. */
const HEARTBEAT_MS = 15_000;

const error = "expected the number of an event, such as 120";
const seq = z.coerce.number({ error }).int({ error }).min(0, { error }).default(0);

/** Ends with the session's run, when the client leaves, or when `ended` is aborted. @throws ClientError before the first byte */
export async function streamEvents(
  stream: { readonly client: Longhaul; readonly id: string; readonly ended: AbortSignal },
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
): Promise<void> {
  const { "last-event-id": last } = request.headers;
  const from =
    last === undefined
      ? parse(seq, query.get("from") ?? undefined, "from")
      : parse(seq, last, "Last-Event-ID");
  const left = new AbortController();
  // Registered first: otherwise a client that leaves at once would be served until the session's end.
  response.on("close", () => left.abort());
  // An unknown session is reported as a status.
  const { id } = await stream.client.status(stream.id);
  const signal = AbortSignal.any([left.signal, stream.ended]);
  // Without it nginx and its like hold events back until a buffer is full.
  const unbuffered = { "x-accel-buffering": "no" };
  response.writeHead(200, {
    ...HEADERS,
    ...unbuffered,
    "content-type": "text/event-stream; charset=utf-8",
  });
  response.flushHeaders();
  const heartbeat = setInterval(() => response.write(": still here\n\n"), HEARTBEAT_MS);
  try {
    const events = stream.client.events(id, { from, signal });
    for (;;) {
      const { value, done } = await events.next();
      if (done === true) {
        if (value !== undefined) response.write(`event: end\ndata: ${JSON.stringify(value)}\n\n`);
        break;
      }
      const isTaken = response.write(`id: ${value.seq}\ndata: ${JSON.stringify(value)}\n\n`);
      // Waits for a slow reader: events wait in Postgres, not here.
      if (!isTaken) await once(response, "drain", { signal }).catch(() => undefined);
    }
  } finally {
    clearInterval(heartbeat);
    response.end();
  }
}
