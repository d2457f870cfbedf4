/** Lets a person use a sandbox's servers: lists listening ports and forwards one to loopback, over the engine's API. */
import { createServer, type AddressInfo, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type Dockerode from "dockerode";
import { reasonOf } from "../../contract/errors.ts";
import { cutChars } from "../../text/cut.ts";
import { forwardSource, portsSource } from "../agent/sources.ts";
import { unless } from "./docker-errors.ts";
import { sandboxName, SESSION_LABEL, SHORT_ID } from "./profile.ts";
import { startProgram, programOutput } from "./run-program.ts";
import { frameReader } from "./supervisor-stream.ts";

/** The tools' user, so that a person's connections give their servers no further rights. */
const TOOL_USER = "1000:1000";
const STDOUT = 1;
const MAX_TROUBLE_CHARS = 200;

export interface ListeningPort {
  readonly port: number;
  readonly address: string;
  /** Null if the process cannot be inspected. */
  readonly pid: number | null;
  readonly process: string | null;
  /** The service beside the sandbox that has this port. */
  readonly service?: string | undefined;
}

/**
 * @param recorded the container's id, as the session's row has it: another installation may have a session of that id here
 * @returns the session's running sandbox on this engine, if it has one
 */
export async function runningSandbox(
  docker: Dockerode,
  sessionId: string,
  recorded: string | undefined,
): Promise<Dockerode.Container | undefined> {
  const container = docker.getContainer(sandboxName(sessionId));
  const info = await unless([404], () => container.inspect());
  const isOurs = info?.Config.Labels[SESSION_LABEL] === sessionId && info.Id.slice(0, SHORT_ID) === recorded;
  return isOurs && info.State.Running ? container : undefined;
}

/** @param services their names by the ports that they are known to have: of others' ports only these are listed */
export async function listeningPorts(
  container: Dockerode.Container,
  services: ReadonlyMap<number, string> = new Map(),
): Promise<readonly ListeningPort[]> {
  const whose = services.size === 0 ? [] : ["LONGHAUL_PORTS_OF=all"];
  const stream = await startProgram(container, ["LONGHAUL_PORTS", portsSource], whose, TOOL_USER);
  const listed = JSON.parse(await programOutput(stream)) as ListeningPort[];
  return listed
    .map((listener) =>
      listener.pid === null ? { ...listener, service: services.get(listener.port) } : listener,
    )
    .filter(({ pid, service }) => services.size === 0 || pid !== null || service !== undefined);
}

/**
 * Forwards a local loopback port to a port of the sandbox. Each connection is a process in the sandbox.
 * @param onTrouble called with the reason when a connection does not reach the server
 * @returns the local port's number, on 127.0.0.1
 * @throws Error if the local port is taken
 */
export async function forwardPort(
  container: Dockerode.Container,
  { port, localPort }: { readonly port: number; readonly localPort: number },
  onTrouble: (reason: string) => void,
) {
  const open = new Set<Socket>();
  const forwarder = ["LONGHAUL_FORWARD", forwardSource] as const;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => socket.destroy());
    socket.pause();
    startProgram(container, forwarder, [`LONGHAUL_PORT=${port}`], TOOL_USER).then(
      (stream) => join(socket, stream, onTrouble),
      (error: unknown) => {
        onTrouble(reasonOf(error));
        socket.destroy();
      },
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(localPort, "127.0.0.1", resolve);
  });
  return {
    localPort: (server.address() as AddressInfo).port,
    close(): void {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

function join(socket: Socket, stream: Duplex, onTrouble: (reason: string) => void): void {
  const frames = frameReader((channel, bytes) => {
    if (channel !== STDOUT) onTrouble(cutChars(bytes.toString("utf8").trim(), MAX_TROUBLE_CHARS));
    else if (!socket.write(bytes)) stream.pause();
  });
  socket.on("drain", () => stream.resume());
  stream.on("data", frames);
  stream.on("end", () => socket.end());
  stream.on("error", () => socket.destroy());
  stream.on("close", () => socket.end());
  socket.on("close", () => stream.destroy());
  // Ends the program's input when the client has sent everything, and keeps its output open.
  socket.pipe(stream);
}
