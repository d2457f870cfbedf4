/** Answers that are far larger than they look. */
import { gzipSync } from "node:zlib";
import { createServer, type RequestListener } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { boundedFetch } from "../../../activities/mcp/bounded-fetch.ts";
import { createOutgoing } from "../../../activities/process/outgoing-fetch.ts";

const MAX = 1 << 20;

async function ask(listener: RequestListener): Promise<Response> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const outgoing = await createOutgoing();
  onTestFinished(async () => {
    await outgoing.close();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return boundedFetch(outgoing.fetch, MAX)(`http://127.0.0.1:${port}/mcp`);
}

describe("an MCP server's answer", () => {
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
    const response = await ask((_request, sent) =>
      sent.writeHead(200, { "content-type": "text/event-stream" }).end(event.repeat(10)),
    );
    expect((await response.text()).length).toBe(event.length * 10);
  });

  it("may not be one endless event", async () => {
    const response = await ask((_request, sent) =>
      sent.writeHead(200, { "content-type": "text/event-stream" }).end("data: xxxxxxxx\n".repeat(200_000)),
    );
    await expect(response.text()).rejects.toThrow("more than 1 MiB");
  });
});
