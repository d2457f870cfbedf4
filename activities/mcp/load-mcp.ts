/** Loads the MCP library when it is first needed. */
import { loadPart } from "../process/load-part.ts";
import type { Store } from "../store/db.ts";
import type { McpAccess } from "./access.ts";
import type { Mcp } from "./mcp.ts";

/** @param store with the logins; without it, servers that require a login cannot be used */
export function createMcp(access: McpAccess, store?: Pick<Store, "db">): Mcp {
  let loaded: Promise<Mcp> | undefined;
  const load = () =>
    (loaded ??= loadPart(import("./create-mcp.ts")).then(({ createLoadedMcp }) =>
      createLoadedMcp(access, store),
    ));
  return {
    list: async (...args) => (await load()).list(...args),
    call: async (...args) => (await load()).call(...args),
    cancelTask: async (...args) => (await load()).cancelTask(...args),
    close: async () => (await loaded)?.close(),
  };
}
