import { createConnection } from "node:net";
import { buffer } from "node:stream/consumers";
import { beforeAll, expect, test } from "vitest";
import {
  forwardPort,
  listeningPorts,
  runningSandbox,
} from "../../activities/sandbox/docker/sandbox-ports.ts";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { useTestSandboxes, waitUntil } from "../support/test-sandboxes.ts";

const SERVER = `
const http = require("http"), net = require("net");
http.createServer((request, response) => {
  if (request.url === "/big") return response.end(Buffer.alloc(5_000_000, 7));
  let size = 0;
  request.on("data", (piece) => (size += piece.length)).on("end", () => response.end("got " + size));
}).listen(8080, "127.0.0.1");
net.createServer({ allowHalfOpen: true }, (socket) => {
  const pieces = [];
  socket.on("data", (piece) => pieces.push(piece)).on("end", () => socket.end(Buffer.concat(pieces).reverse()));
}).listen(8081);
`;

const sandboxes = useTestSandboxes();
let sandbox: Sandbox;
const sessionId = () => sandbox.container.replace(/^longhaul-/, "");

beforeAll(async () => {
  sandbox = await sandboxes.host.open(sandboxes.spec({ network: "none" }));
  await sandbox.start({ id: "serve", argv: ["node", "-e", SERVER] });
});

const container = async () => {
  const found = await runningSandbox(sandboxes.docker, sessionId(), sandbox.identity.container);
  if (found === undefined) throw new Error("no sandbox");
  return found;
};

test("listening ports of a sandbox are listed with their process, without our own", async () => {
  await waitUntil(
    async () => (await listeningPorts(await container())).length === 2,
    "both servers listen",
    15_000,
  );
  expect(await listeningPorts(await container())).toEqual([
    {
      port: 8080,
      address: "127.0.0.1",
      pid: expect.any(Number),
      process: expect.stringMatching(/node|Main/),
    },
    { port: 8081, address: "::", pid: expect.any(Number), process: expect.any(String) },
  ]);
  expect(await runningSandbox(sandboxes.docker, "no-such-session", undefined)).toBeUndefined();
  // Another installation's session of the same id has its own row.
  expect(await runningSandbox(sandboxes.docker, sessionId(), "0123456789ab")).toBeUndefined();
});

test("a server without a network answers at a loopback port, with complete data both ways", async () => {
  const troubles: string[] = [];
  const forward = await forwardPort(await container(), { port: 8080, localPort: 0 }, (why) =>
    troubles.push(why),
  );
  const at = `http://127.0.0.1:${forward.localPort}`;
  const posted = await fetch(at, { method: "POST", body: Buffer.alloc(300_000) });
  expect(await posted.text()).toBe("got 300000");
  // On the same connection, which stays open.
  const big = Buffer.from(await (await fetch(`${at}/big`)).arrayBuffer());
  expect(big.equals(Buffer.alloc(5_000_000, 7))).toBe(true);
  forward.close();
  await expect(fetch(at)).rejects.toThrow();
  expect(troubles).toEqual([]);
});

test("the end of either side is passed on, and a port where nothing listens is reported", async () => {
  const troubles: string[] = [];
  const to = async (port: number) =>
    forwardPort(await container(), { port, localPort: 0 }, (why) => troubles.push(why));
  const [echo, nothing] = await Promise.all([to(8081), to(8099)]);
  const peer = createConnection({ port: echo.localPort, host: "127.0.0.1", allowHalfOpen: true });
  peer.end("abc");
  expect((await buffer(peer)).toString()).toBe("cba");
  const refused = createConnection({ port: nothing.localPort, host: "127.0.0.1" });
  expect((await buffer(refused)).length).toBe(0);
  expect(troubles).toEqual([expect.stringMatching(/refused/i)]);
  echo.close();
  nothing.close();
});
