/** Requests whose body is read in pieces as they arrive: as fetch does it, seen against a real server. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { createOutgoing } from "../../activities/process/outgoing-fetch.ts";

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

async function post(url: string, headers: Record<string, string> = {}, signal: AbortSignal | null = null) {
  const outgoing = await createOutgoing();
  onTestFinished(() => outgoing.close());
  return outgoing.request(url, { method: "POST", headers: new Headers(headers), body: "{}", signal });
}

const PLAIN = "one answer, ".repeat(50);

describe("an answer", () => {
  it.each([
    ["gzip", gzipSync(PLAIN)],
    ["br", brotliCompressSync(PLAIN)],
    ["zstd", zstdCompressSync(PLAIN)],
    ["gzip, br", brotliCompressSync(gzipSync(PLAIN))],
  ])("is read if it comes with %s although none was asked for", async (encoding, sent) => {
    let asked: string | undefined;
    const url = await serve((request, response) => {
      asked = request.headers["accept-encoding"];
      response.writeHead(200, { "content-encoding": encoding }).end(sent);
    });
    const { body } = await post(url);
    expect(await text(body)).toBe(PLAIN);
    expect(asked).toBe("identity");
  });

  it("keeps its status, its headers and their repeats", async () => {
    const url = await serve((_request, response) => {
      response.writeHead(429, "Slow Down", { "retry-after": "7", "x-limit": ["a", "b"] }).end("no");
    });
    const { status, statusText, headers, body } = await post(url);
    expect([status, statusText, headers.get("retry-after"), headers.get("x-limit")]).toEqual([
      429,
      "Slow Down",
      "7",
      "a, b",
    ]);
    expect(await text(body)).toBe("no");
  });

  it("that is cut off ends with an error", async () => {
    const url = await serve((_request, response) => {
      response.writeHead(200);
      response.write("half");
      setImmediate(() => response.destroy());
    });
    const { body } = await post(url);
    await expect(text(body)).rejects.toMatchObject({
      code: expect.stringMatching(/UND_ERR_SOCKET|ECONNRESET/),
    });
  });
});

describe("a redirect", () => {
  it.each([301, 302, 303, 307, 308])(
    "with status %i to another origin is refused: it gets nothing",
    async (status) => {
      let got = 0;
      const target = await serve((_request, response) => {
        got += 1;
        response.end("here");
      });
      const url = await serve((_request, response) => response.writeHead(status, { location: target }).end());
      const refused = await post(url, { authorization: "Bearer k", "x-mine": "1" }).catch(
        (error: unknown) => error,
      );
      expect(refused).toMatchObject({
        message: "fetch failed",
        cause: { message: expect.stringContaining(`redirects to ${new URL(target).origin}`) as string },
      });
      expect(got).toBe(0);
    },
  );

  it("within the origin is followed, with the same body and headers", async () => {
    const got: { body: string; key: string | undefined }[] = [];
    const url = await serve((request, response) => {
      if (request.url !== "/there") return void response.writeHead(308, { location: "/there" }).end();
      void text(request).then((body) => {
        got.push({ body, key: request.headers.authorization });
        response.end("here");
      });
    });
    const { body } = await post(url, { authorization: "Bearer k" });
    expect(await text(body)).toBe("here");
    expect(got).toEqual([{ body: "{}", key: "Bearer k" }]);
  });

  it("that never ends fails", async () => {
    let count = 0;
    const url = await serve((_request, response) => {
      count += 1;
      response.writeHead(307, { location: `/${count}` }).end();
    });
    await expect(post(url)).rejects.toMatchObject({ message: "fetch failed" });
    expect(count).toBeLessThan(30);
  });
});

it("fails as fetch does if no one listens", async () => {
  await expect(post("http://127.0.0.1:1/")).rejects.toMatchObject({
    name: "TypeError",
    message: "fetch failed",
    cause: { code: "ECONNREFUSED" },
  });
});

it("ends with the signal's reason, before the headers and after them", async () => {
  const why = new Error("enough");
  const silent = await serve(() => undefined);
  const controller = new AbortController();
  const asked = post(silent, {}, controller.signal);
  setImmediate(() => controller.abort(why));
  await expect(asked).rejects.toBe(why);

  const url = await serve((_request, response) => response.writeHead(200).write("first"));
  const later = new AbortController();
  const { body } = await post(url, {}, later.signal);
  later.abort(why);
  await expect(text(body)).rejects.toBe(why);
});
