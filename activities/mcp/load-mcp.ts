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
    list: async (...given) => (await load()).list(...given),
    call: async (...given) => (await load()).call(...given),
    cancelTask: async (...given) => (await load()).cancelTask(...given),
    close: async () => (await loaded)?.close(),
  };
}
