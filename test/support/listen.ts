import type { Server as HttpServer } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { onTestFinished } from "vitest";
import type { AtEnd } from "./empty-folder.ts";

/** Makes a server listen on this machine, until the end. @returns its port */
export async function listen(
  server: Server | HttpServer,
  { host = "127.0.0.1", end = onTestFinished }: { readonly host?: string; readonly end?: AtEnd } = {},
): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, host, resolve));
  end(() => {
    if ("closeAllConnections" in server) server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** The password of basic auth; empty without one. */
export function basicPassword(authorization = ""): string {
  const credentials = Buffer.from(authorization.replace(/^Basic /, ""), "base64").toString();
  return credentials.slice(credentials.indexOf(":") + 1);
}
