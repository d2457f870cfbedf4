/** Answers that are far larger than they should be, at every place that asks others. */
import { gzipSync } from "node:zlib";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { askForge } from "../../activities/forge/calls.ts";
import { askBatch } from "../../activities/git/lfs-store.ts";
import { gatheredBody } from "../../activities/model/stream-events.ts";
import { readJson, type Bounds } from "../../activities/process/bounded-body.ts";
import { createOutgoing } from "../../activities/process/outgoing-fetch.ts";
import { askServer } from "../../client/setup/model-servers.ts";
import { listen } from "../support/listen.ts";

const MAX = 1 << 20;
const PIECE = Buffer.alloc(256 * 1024, "x");
/** Well above what anything here reads, and below what would fill a test's memory. */
const MOST_SENT = 200 << 20;

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(listener: Listener): Promise<string> {
  const server = createServer(listener);
  return `http://127.0.0.1:${await listen(server, { end: onTestFinished })}`;
}

async function ask(listener: Listener, bounds: Bounds = { maxBytes: MAX }): Promise<Response> {
  const outgoing = await createOutgoing();
  onTestFinished(() => outgoing.close());
  return outgoing.fetch(`${await serve(listener)}/mcp`, { bounds });
}

async function askModel(url: string): Promise<string> {
  const outgoing = await createOutgoing();
  onTestFinished(() => outgoing.close());
  const order = { method: "POST", headers: new Headers(), body: "{}", signal: null };
  const { body, status } = await outgoing.request(url, order);
  const reading = status < 400 ? {} : undefined;
  return text(gatheredBody(body, { reading, gatherMs: () => 0, onBytes: () => undefined }));
}

async function askedStream(url: string): Promise<ReadableStream<Uint8Array>> {
  const outgoing = await createOutgoing();
  onTestFinished(() => outgoing.close());
  const order = { method: "POST", headers: new Headers(), body: "{}", signal: null };
  const { body } = await outgoing.request(url, order);
  return gatheredBody(body, { reading: {}, gatherMs: () => 0, onBytes: () => undefined });
}

const signal = AbortSignal.timeout(60_000);
/** Everything that asks a server of others and keeps its answer. */
const DOORS: readonly (readonly [string, (url: string) => Promise<unknown>])[] = [
  [
    "a forge",
    (api) => askForge({ forge: { kind: "github", api } as never, token: undefined, signal }, "GET", "/"),
  ],
  [
    "a store of Git LFS",
    (endpoint) =>
      askBatch(
        { endpoint, headers: {}, refused: async () => undefined },
        "download",
        [{ oid: "a", size: 1 }],
        signal,
      ),
  ],
  ["a model's list", (url) => askServer(url, { timeoutMs: 60_000 })],
  ["a model", askModel],
];
const ANSWERS: readonly (readonly [string, number, Record<string, string>])[] = [
  ["an endless answer", 200, { "content-type": "application/json" }],
  ["an endless line of events", 200, { "content-type": "text/event-stream" }],
  ["an endless error", 500, { "content-type": "text/html" }],
  ["an endless refusal", 404, { "content-type": "application/json" }],
];

describe("an answer of others", () => {
  it.each(DOORS.flatMap(([door, go]) => ANSWERS.map((answer) => [door, go, ...answer] as const)))(
    "is read up to a limit: %s, %s",
    async (_door, go, _answer, status, headers) => {
      let sent = 0;
      const url = await serve((request, response) => {
        request.resume();
        response.writeHead(status, headers);
        const more = () => {
          while (sent < MOST_SENT && !response.destroyed) {
            sent += PIECE.length;
            if (!response.write(PIECE)) return void response.once("drain", more);
          }
          response.end();
        };
        more();
      });
      await go(url).catch((error: unknown) => expect(error).toBeInstanceOf(Error));
      expect(sent).toBeLessThan(MOST_SENT);
    },
    60_000,
  );

  it("is read no further than the limit, however well it is compressed", async () => {
    const bomb = gzipSync(Buffer.alloc(200 << 20, "x"));
    const response = await ask((_request, sent) =>
      sent.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(bomb),
    );
    await expect(response.text()).rejects.toThrow("its answer has more than 1 MiB");
  });

  it("below it is unchanged, with its address and headers", async () => {
    const response = await ask((_request, sent) =>
      sent.writeHead(201, { "content-type": "application/json", "x-mine": "1" }).end('{"a":1}'),
    );
    expect(response.url).toMatch(/\/mcp$/);
    expect([response.status, response.headers.get("x-mine"), await response.json()]).toEqual([
      201,
      "1",
      { a: 1 },
    ]);
  });

  it("may be many events of a stream, each below the limit", async () => {
    const event = `data: ${"x".repeat(400_000)}\r\n\r\n`;
    const listener: Listener = (_request, sent) =>
      sent.writeHead(200, { "content-type": "text/event-stream" }).end(event.repeat(10));
    expect((await (await ask(listener)).text()).length).toBe(event.length * 10);
    await expect((await ask(listener, { maxBytes: MAX, maxStreamBytes: 2 * MAX })).text()).rejects.toThrow(
      "more than 2 MiB",
    );
  });

  it.each([
    ["an MCP server's notices", ask],
    [
      "a model's answer",
      async (listener: Listener) => new Response(await askedStream(await serve(listener))),
    ],
  ])("takes no more of the worker's time, however many events it has: %s", async (_, read) => {
    const notice = `data: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/message" })}\n\n`;
    let sent = 0;
    const response = await read((request, answer) => {
      request.resume();
      answer.writeHead(200, { "content-type": "text/event-stream" });
      const more = () => {
        while (!answer.destroyed) {
          sent += 1_000;
          if (!answer.write(notice.repeat(1_000))) return void answer.once("drain", more);
        }
      };
      more();
    });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let events = 0;
    const startMs = performance.now();
    while (performance.now() - startMs < 3_000)
      events +=
        Buffer.from((await reader.read()).value ?? [])
          .toString()
          .split("\n\n").length - 1;
    const seconds = (performance.now() - startMs) / 1_000;
    await reader.cancel();
    // What may come at once, what the seconds let through, and pieces that were on their way; unpaced, a second has 100,000.
    expect(events).toBeLessThan(8_000 + 2_000 * seconds);
    expect(sent).toBeGreaterThan(events);
  });

  it("may not be one endless event", async () => {
    const response = await ask((_request, sent) =>
      sent.writeHead(200, { "content-type": "text/event-stream" }).end("data: xxxxxxxx\n".repeat(200_000)),
    );
    await expect(response.text()).rejects.toThrow("more than 1 MiB");
  });

  it("may be nested like any API's, and no deeper", async () => {
    const nested = (depth: number) =>
      new Response(`{"[{":"[\\"{${"[".repeat(300)}","a":${"[".repeat(depth)}${"]".repeat(depth)}}`);
    expect(await readJson(nested(100))).toHaveProperty("a");
    await expect(readJson(nested(100_000))).rejects.toThrow("in one another");
  });
});
