/** A Docker engine that accepts connections and answers nothing, such as one whose disk hangs. */
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";

const ANSWER_MS = 200;
const SPEC = {
  sessionId: "s-1",
  image: "sandbox",
  network: "none",
  memoryBytes: 2 ** 29,
  cpus: 1,
  pids: 64,
} as const;

/** @param onRequest the engine's handling of requests; default nothing */
async function startEngine(onRequest: (socket: Socket) => void = () => undefined) {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => onRequest(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return connectDocker({ protocol: "http", host: "127.0.0.1", port }, ANSWER_MS);
}

const UNAVAILABLE = {
  type: "SandboxUnavailable",
  nonRetryable: false,
  message: expect.stringContaining("no answer within 0.2 s"),
};

describe("an engine that accepts a request and never answers", () => {
  it("is abandoned, and the work is retried", async () => {
    const host = createDockerHost({ docker: await startEngine(), name: "silent" });
    await expect(host.open(SPEC)).rejects.toMatchObject(UNAVAILABLE);
    await expect(host.sessions()).rejects.toMatchObject(UNAVAILABLE);
    await expect(host.volume("s-1")).rejects.toMatchObject(UNAVAILABLE);
    await expect(host.remove("s-1")).rejects.toMatchObject(UNAVAILABLE);
  });

  it("is abandoned in the middle of an answer, too, and if a stream was requested", async () => {
    const half = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{";
    const inAnswer = await startEngine((socket) => void socket.write(half));
    await expect(inAnswer.info()).rejects.toThrow("no answer within 0.2 s");
    const silent = await startEngine();
    await expect(silent.getExec("e").start({ hijack: true, stdin: true })).rejects.toThrow(
      "no answer within 0.2 s",
    );
  });

  it("keeps a stream open that is silent for longer than that", async () => {
    const upgraded = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
    const docker = await startEngine((socket) => {
      socket.write(upgraded);
      setTimeout(() => socket.write("at last"), 2 * ANSWER_MS);
    });
    const stream = await docker.getExec("e").start({ hijack: true, stdin: true });
    const said = await new Promise((resolve, reject) => {
      stream.on("data", (data: Buffer) => resolve(data.toString()));
      stream.on("error", reject);
      stream.on("close", () => reject(new Error("The stream was closed.")));
    });
    expect(said).toBe("at last");
    stream.destroy();
  });
});
