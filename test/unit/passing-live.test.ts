/** What the libraries really throw when a connection breaks, a server talks nonsense, or nobody answers: by real sockets, not by their codes. */
import { createServer as createHttp, get, type ServerResponse } from "node:http";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import pg from "pg";
import { afterEach, expect, it } from "vitest";
import { passesUnnamed } from "../../activities/contract/errors.ts";
import { createOutgoing } from "../../activities/process/outgoing-fetch.ts";
import { databaseErrorOf } from "../../activities/store/database-error.ts";

const ends: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.on("error", () => undefined);
  });
  ends.push(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

/** Answers by HTTP. */
const http = (answer: (response: ServerResponse) => void) =>
  createHttp((_request, response) => answer(response)) as Server;
/** Answers each connection's first bytes. */
const raw = (answer: (socket: Socket) => void) =>
  createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => answer(socket));
  });
const HEAD = "HTTP/1.1 200 OK\r\n";

const BROKEN: Readonly<Record<string, () => Server>> = {
  "closes before an answer": () => raw((socket) => socket.end()),
  "resets before an answer": () => raw((socket) => socket.resetAndDestroy()),
  "closes in the head": () => raw((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-le")),
  "closes in a body with a length": () => raw((socket) => socket.end(`${HEAD}content-length: 9\r\n\r\nabc`)),
  "resets in a body": () =>
    http((response) => {
      response.write("abc", () => response.socket?.resetAndDestroy());
    }),
  "closes in a body by pieces": () =>
    raw((socket) => socket.end(`${HEAD}transfer-encoding: chunked\r\n\r\n5\r\nab`)),
};

/** The clients in use: fetch, the one for models, forges and MCP, and the engine's. */
const CLIENTS: Readonly<Record<string, (url: string) => Promise<string>>> = {
  fetch: async (url) => (await fetch(url)).text(),
  "the outgoing fetch": async (url) => {
    const { fetch: outgoing, close } = await createOutgoing();
    ends.push(close);
    return (await outgoing(url)).text();
  },
  "node:http": (url) =>
    new Promise((done, fail) => {
      get(url, (response) => void text(response).then(done, fail)).on("error", fail);
    }),
};

const thrownBy = async (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    (value) => Promise.reject(new Error(`nothing was thrown, but there was ${String(value)}`)),
    (error: unknown) => error,
  );

it.each(
  Object.keys(CLIENTS).flatMap((client) => Object.keys(BROKEN).map((server) => [client, server] as const)),
)("%s: a server that %s passes", async (client, server) => {
  const port = await portOf((BROKEN[server] as () => Server)());
  const error = await thrownBy(
    (CLIENTS[client] as (url: string) => Promise<string>)(`http://127.0.0.1:${port}/`),
  );
  expect(passesUnnamed(error), String(error)).toBe(true);
});

it.each(Object.entries(CLIENTS))("%s: nobody who listens passes", async (_client, call) => {
  const server = createServer();
  const port = await portOf(server);
  await new Promise((done) => server.close(done));
  const error = await thrownBy(call(`http://127.0.0.1:${port}/`));
  expect(passesUnnamed(error), String(error)).toBe(true);
});

it("a time limit of ours passes", async () => {
  const port = await portOf(createServer());
  const error = await thrownBy(fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(20) }));
  expect(passesUnnamed(error), String(error)).toBe(true);
});

it.each(Object.entries(CLIENTS))("%s: what is no HTTP is told at once", async (_client, call) => {
  const port = await portOf(raw((socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n")));
  const error = await thrownBy(call(`http://127.0.0.1:${port}/`));
  expect(passesUnnamed(error), String(error)).toBe(false);
});

it("a server without TLS where TLS is asked for is told at once", async () => {
  const port = await portOf(raw((socket) => socket.end(`${HEAD}content-length: 0\r\n\r\n`)));
  const error = await thrownBy(fetch(`https://127.0.0.1:${port}/`));
  expect(passesUnnamed(error), String(error)).toBe(false);
});

/** What Postgres' driver throws. */
async function asked(server: Server, more: pg.ClientConfig = {}): Promise<unknown> {
  const port = await portOf(server);
  const pool = new pg.Pool({
    host: "127.0.0.1",
    port,
    user: "u",
    database: "d",
    password: "p",
    max: 1,
    ...more,
  });
  ends.push(() => pool.end());
  return thrownBy(pool.query("select 1"));
}

it.each<[string, () => Server, pg.ClientConfig]>([
  ["closes", () => raw((socket) => socket.end()), {}],
  ["resets", () => raw((socket) => socket.resetAndDestroy()), {}],
  ["closes when TLS is asked for", () => raw((socket) => socket.end()), { ssl: true }],
  ["does not answer", () => createServer(), { connectionTimeoutMillis: 30 }],
])("Postgres' driver: a server that %s passes", async (_what, server, more) => {
  const error = await asked(server(), more);
  expect(databaseErrorOf(error), String(error)).toMatchObject({ final: false });
});

it("Postgres' driver: a server without TLS where TLS is asked for is told at once", async () => {
  const error = await asked(
    raw((socket) => socket.write("N")),
    { ssl: true },
  );
  expect(databaseErrorOf(new Error("Failed query: select 1", { cause: error }))).toMatchObject({
    final: true,
  });
});
