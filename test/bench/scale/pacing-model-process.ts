/**
 * A model for hundreds of sessions at once, in a process of its own: each answer streams for so long at 40 tokens a second and
 * asks for one command. Its pieces are made ahead, and one clock sends them all: the double is not to be what is measured.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createResponsesWriter } from "../../support/model-server/responses-writer.ts";
import { now, serve } from "../stand/channel.ts";
import { TOKEN, TOKEN_MS } from "../stand/plan.ts";

/** Each step streams for so long. */
const STREAM_MS = 10_000;

/** Between the end of one answer and the session's next request: what is not the model's own time. */
export interface Pause {
  readonly from: number;
  /** Undefined while the next request has not come. */
  readonly to: number | undefined;
  /** How long the answer before it took: longer than planned if the machine is too busy for this process. */
  readonly streamedMs: number;
}

interface Stream {
  readonly began: number;
  /** Which beat of the clock is its own, so that not all speak at once. */
  readonly beat: number;
  readonly id: string;
  readonly response: ServerResponse;
  readonly pieces: readonly string[];
  next: number;
}

const BEATS = 5;
let beat = 0;
let begun = 0;
let sent = 0;
const streams = new Set<Stream>();
const pauses: Pause[] = [];
/** By session, the one that continues. */
const open = new Map<string, Pause>();
/** Sessions that have asked again after an answer. */
const stepped = new Set<string>();
const answers = new Map<number, readonly string[]>();

/** What is sent for a step, the same for all sessions: a piece for each token, then the call. */
function answerOf(step: number): readonly string[] {
  const known = answers.get(step);
  if (known !== undefined) return known;
  const writer = createResponsesWriter({ model: "gpt-4o", number: step, encrypted: false, summary: false });
  const pieces: string[] = [];
  let pending = writer.begin();
  const words = TOKEN.repeat(STREAM_MS / TOKEN_MS);
  for (const frame of writer.part({ type: "text", text: words }, TOKEN.length)) {
    pending += frame.text;
    if (!frame.delta) continue;
    pieces.push(pending);
    pending = "";
  }
  const call = { type: "call", name: "bash", arguments: { command: `true ${step}` } } as const;
  for (const frame of writer.part(call, Infinity)) pending += frame.text;
  const usage = { input: 1_000 * step, cached: 0, output: words.length / TOKEN.length, reasoning: 0 };
  pieces.push(pending + writer.finish({ finish: "tool-calls", usage }));
  answers.set(step, pieces);
  return pieces;
}

/** Which step is asked for: by the results that are there, so that a step asked for again gets the same answer. */
const stepOf = (body: string) => body.split('"type":"function_call_output"').length;
const sessionOf = (body: string) => /"prompt_cache_key":"([^"]+)"/.exec(body)?.[1] ?? "";

const server = createServer((request, response) => {
  void text(request).then((body) => answer(body, response));
});

function answer(body: string, response: ServerResponse): void {
  const id = sessionOf(body);
  const pause = open.get(id);
  if (open.delete(id) && pause !== undefined) {
    pauses.push({ ...pause, to: now() });
    stepped.add(id);
  }
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  const pieces = answerOf(stepOf(body));
  const stream = { id, response, pieces, next: 0, began: now(), beat: (begun += 1) % BEATS };
  streams.add(stream);
  response.on("close", () => streams.delete(stream));
}

function send(stream: Stream): void {
  const piece = stream.pieces[stream.next];
  stream.next += 1;
  sent += 1;
  if (stream.next < stream.pieces.length) return void stream.response.write(piece);
  streams.delete(stream);
  stream.response.end(piece);
  const from = now();
  open.set(stream.id, { from, to: undefined, streamedMs: from - stream.began });
}

const clock = setInterval(() => {
  beat = (beat + 1) % BEATS;
  for (const stream of streams) if (stream.beat === beat) send(stream);
}, TOKEN_MS / BEATS);

server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1");
await once(server, "listening");

const verbs = {
  url: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
  /** Answers that are on their way. */
  streaming: () => streams.size,
  stepped: () => stepped.size,
  /** Pieces that were sent so far, of the 400 of an answer. */
  sent: () => sent,
  /** All that ended since this was last asked, and those that continue now. */
  pauses: () => ({ ended: pauses.splice(0), open: [...open.values()], now: now() }),
  forget: () => {
    open.clear();
    stepped.clear();
  },
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
};
export type PacingModelVerbs = typeof verbs;

serve(verbs, async () => {
  clearInterval(clock);
  server.close();
  server.closeAllConnections();
});
