/** Login to an MCP server, and logout. The browser is redirected to this machine; the login is stored in Postgres. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { logIn } from "../../activities/mcp/login.ts";
import { createLogins } from "../../activities/mcp/logins.ts";
import { createSealer } from "../../activities/mcp/sealed.ts";
import type { Store } from "../../activities/store/db.ts";

export interface LoginTarget {
  readonly name: string;
  readonly url: string;
  readonly scopes: readonly string[] | undefined;
}

/** Timeout for the person, in ms. Source: ours, ten minutes. */
const PATIENCE_MS = 10 * 60_000;

/** @param show receives the address to open @throws Error with a message for people */
export async function loginToMcp(
  { name, url, scopes }: LoginTarget,
  at: { readonly store: Pick<Store, "db">; readonly secret: string | undefined },
  show: (address: string) => void,
): Promise<void> {
  // Fails before the person opens the browser in vain.
  createSealer(at.secret);
  const back = Promise.withResolvers<URLSearchParams>();
  const server = createServer((request, answer) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://127.0.0.1");
    if (pathname !== "/callback") return void answer.writeHead(404).end();
    answer.setHeader("Content-Type", "text/plain; charset=utf-8").end("You can close this page.\n");
    back.resolve(searchParams);
  });
  const timer = setTimeout(
    () => back.reject(new Error(`no login came within ${PATIENCE_MS / 60_000} minutes`)),
    PATIENCE_MS,
  );
  back.promise.catch(() => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const redirectUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
    const browser = {
      redirectUrl,
      open: (address: URL) => show(address.toString()),
      answer: () => back.promise,
    };
    const access = await logIn({ url, scopes }, browser);
    await createLogins(at.store, at.secret).keep(name, url, access);
  } finally {
    clearTimeout(timer);
    server.closeAllConnections();
    server.close();
  }
}

/** @returns false if there was no login */
export function logoutOfMcp({ name, url }: LoginTarget, store: Pick<Store, "db">): Promise<boolean> {
  return createLogins(store, undefined).forget(name, url);
}
