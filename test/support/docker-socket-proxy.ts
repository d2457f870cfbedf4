/**
 * A proxy in front of the Docker engine with the rules of the one in docker-compose.yml: for each method, a pattern of
 * whole paths.
 */
import { readFileSync } from "node:fs";
import { createServer, request, type IncomingMessage } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { parse } from "yaml";

const SOCKET = "/var/run/docker.sock";
export interface SocketProxy {
  readonly port: number;
  /** Rules that let something through. */
  readonly usedRules: ReadonlySet<string>;
  /** Refused requests. */
  readonly refused: readonly string[];
  close(): Promise<void>;
}

/** As in docker-compose.yml: `-allowGET=/version`. */
export function composedRules(): readonly string[] {
  const text = readFileSync(new URL("../../docker-compose.yml", import.meta.url), "utf8");
  const { services } = parse(text) as { services: Record<string, { command?: readonly string[] }> };
  return (services["docker-proxy"]?.command ?? []).filter((argument) => /^-allow[A-Z]+=/.test(argument));
}

export async function startSocketProxy(rules: readonly string[]): Promise<SocketProxy> {
  const usedRules = new Set<string>();
  const refused: string[] = [];
  const sockets = new Set<Socket>();
  const passes = ({ method = "", url = "" }: IncomingMessage): boolean => {
    const [path = ""] = url.split("?", 1);
    const start = `-allow${method}=`;
    const fitting = rules.filter(
      (rule) => rule.startsWith(start) && new RegExp(`^${rule.slice(start.length)}$`).test(path),
    );
    for (const rule of fitting) usedRules.add(rule);
    if (fitting.length === 0) refused.push(`${method} ${path}`);
    return fitting.length > 0;
  };
  const passOn = ({ method, url, headers }: IncomingMessage) =>
    // Its own connection, which ends with the client's.
    request({ socketPath: SOCKET, method, path: url, headers, agent: false });
  const server = createServer((incoming, answer) => {
    if (!passes(incoming)) return void answer.writeHead(403).end("Forbidden");
    const engine = passOn(incoming);
    engine.on("response", (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      answer.flushHeaders();
      reply.pipe(answer);
    });
    // An answer that is complete has given its connection back.
    engine.on("error", () => answer.writableEnded || answer.destroy());
    answer.on("close", () => answer.writableFinished || engine.destroy());
    incoming.pipe(engine);
  });
  // A stream into a container: from here on, bytes in both directions.
  server.on("upgrade", (incoming: IncomingMessage, socket: Socket, head: Buffer) => {
    if (!passes(incoming)) return void socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    const fields = incoming.rawHeaders.flatMap((name, at, all) =>
      at % 2 === 0 ? [`${name}: ${all[at + 1]}`] : [],
    );
    const engine = connect(SOCKET);
    engine.write([`${incoming.method} ${incoming.url} HTTP/1.1`, ...fields, "", ""].join("\r\n"));
    engine.write(head);
    engine.pipe(socket).pipe(engine);
    engine.on("error", () => socket.destroy());
    socket.on("error", () => engine.destroy());
    socket.on("close", () => engine.destroy());
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    usedRules,
    refused,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
