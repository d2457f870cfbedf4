/** Lists the tools of MCP servers, as a session would: for `mcp` and `doctor`. */
import { shellWord } from "../console/format.ts";
import { randomUUID } from "node:crypto";
import { probeId } from "../../activities/contract/session-ids.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import type { AgentConfig } from "../../activities/config/agent-config.ts";
import { expandDomains } from "../../activities/config/egress-domains.ts";
import { isRemote, type McpServer } from "../../activities/config/mcp-settings.ts";
import { createMcpAccess } from "../../activities/mcp/access.ts";
import type { ListedTools, Mcp } from "../../activities/mcp/mcp.ts";
import { createMcp } from "../../activities/mcp/load-mcp.ts";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { openStore, type Store } from "../../activities/store/db.ts";
import { toolSpec } from "../../activities/tools/index.ts";
import { mcpToolName, toMcpTools } from "../../activities/tools/mcp-tools.ts";
import { estimateTools } from "../../activities/contract/request-size.ts";
import { sandboxSpec } from "../../activities/sandbox/sandbox-host.ts";
import { withMachine } from "../registries/session-registries.ts";
import type { Diagnosis } from "./doctor.ts";
import { findServices, settingOf } from "./services.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { logIn, createLogins, createSealer } from "../../activities/mcp/logins.ts";

export interface McpFinding {
  readonly server: string;
  readonly place: "http" | "sandbox" | "worker";
  /** Revision of the protocol; null if the server was not asked or did not answer. */
  readonly era: string | null;
  readonly tools: readonly {
    readonly name: string;
    /** Estimated size of the tool's description and schema. */
    readonly tokens: number;
    /** True if the tool may be called again after a crash. */
    readonly readOnly: boolean;
    /** As annotated by the server. */
    readonly destructive: boolean;
  }[];
  /** Why no tools were listed; null if they were, or the server was not asked. */
  readonly failed: string | null;
}

const SERVER_MS = 5_000;

/** Lists a server's tools. A program runs in its own sandbox, which is then removed. Never rejects. */
export async function checkMcpServer(
  name: string,
  settings: Pick<AgentConfig, "mcpServers" | "sandbox">,
  environment: Environment,
): Promise<McpFinding> {
  const server = settings.mcpServers[name];
  if (server === undefined) throw new Error(`no server ${name}`);
  const runsAt = placeOf(server);
  if (runsAt === "worker")
    return { ...unasked(name, runsAt), failed: "it runs on the worker, and cannot be tested from here" };
  // The server's login is in the database.
  const store =
    server.auth === "oauth" ? openStore({ url: findServices().databaseUrl, maxConnections: 1 }) : undefined;
  const mcp = createMcp(createMcpAccess(environment), store);
  try {
    const listed = isRemote(server)
      ? await mcp.list(listRequest(name, server), undefined, new AbortController().signal)
      : await listInSandbox(mcp, name, server, settings.sandbox);
    return found(name, server, listed);
  } catch (error) {
    const failed = reasonOf(error);
    return { server: name, place: runsAt, era: null, tools: [], failed };
  } finally {
    await mcp.close();
    await store?.close();
  }
}

/** Asks servers over HTTP. Programs start slowly, so they are only named. */
export function listMcpServers(
  settings: Pick<AgentConfig, "mcpServers" | "sandbox">,
  environment: Environment,
): Promise<McpFinding[]> {
  const enabled = Object.entries(settings.mcpServers).filter(([, server]) => server.enabled);
  return Promise.all(
    enabled.map(async ([name, server]): Promise<McpFinding> => {
      const runsAt = placeOf(server);
      if (runsAt !== "http") return unasked(name, runsAt);
      const quick = { ...server, startTimeout: Math.min(server.startTimeout, SERVER_MS) };
      return checkMcpServer(name, { ...settings, mcpServers: { [name]: quick } }, environment);
    }),
  );
}

/** One check per server. */
export async function mcpChecks(
  settings: Pick<AgentConfig, "mcpServers" | "sandbox">,
  environment: Environment = process.env,
): Promise<Diagnosis["checks"]> {
  const findings = await listMcpServers(settings, environment);
  return findings.map(({ server, place: runsAt, era, tools, failed }) => {
    const name = `MCP ${server}`;
    if (failed !== null)
      return {
        name,
        ok: settings.mcpServers[server]?.required !== true,
        warning: true,
        found: `provides no tools: ${failed}`,
        fix: `\`longhaul mcp test ${shellWord(server)}\` tries it again.`,
      };
    if (runsAt === "worker")
      return { name, ok: true, found: "a program on the worker, if its policy file names it" };
    if (runsAt === "sandbox")
      return {
        name,
        ok: true,
        found: `a program in the sandbox; \`longhaul mcp test ${shellWord(server)}\` tries it`,
      };
    return { name, ok: true, found: `${tools.length} tools (${era ?? ""})` };
  });
}

function placeOf(server: McpServer): McpFinding["place"] {
  if (server.where === "worker") return "worker";
  return isRemote(server) ? "http" : "sandbox";
}

const unasked = (server: string, runsAt: McpFinding["place"]): McpFinding => ({
  server,
  place: runsAt,
  era: null,
  tools: [],
  failed: null,
});

const listRequest = (name: string, settings: McpServer) => ({
  sessionId: probeId("mcp-test", randomUUID()),
  name,
  settings,
});

async function listInSandbox(
  mcp: Mcp,
  name: string,
  server: McpServer,
  sandbox: AgentConfig["sandbox"],
): Promise<ListedTools> {
  const guardImage = settingOf("LONGHAUL_GUARD_IMAGE");
  const host = createDockerHost({
    docker: connectDocker(),
    name: "mcp-test",
    guardImage,
  });
  const of = listRequest(name, server);
  try {
    const machineSandbox = withMachine(sandbox, process.env, process.cwd()).sandbox;
    const opened = await host.open(sandboxSpec({ id: of.sessionId, config: { sandbox: machineSandbox } }));
    await opened.egress?.allow(expandDomains(machineSandbox.domains));
    return await mcp.list(of, opened, new AbortController().signal);
  } finally {
    await host.remove(of.sessionId).catch(() => undefined);
    await host.close();
  }
}

function found(server: string, settings: McpServer, { era, tools: entries }: ListedTools): McpFinding {
  return {
    server,
    place: placeOf(settings),
    era,
    tools: toMcpTools(server, settings, entries).map((tool) => {
      const entry = entries.find(({ name }) => mcpToolName(server, name) === tool.name);
      const destructive = entry?.hints?.destructive === true;
      return {
        name: tool.name,
        tokens: estimateTools([toolSpec(tool)]),
        readOnly: tool.readOnly,
        destructive,
      };
    }),
    failed: null,
  };
}

/** Login to an MCP server, and logout. The browser is redirected to this machine; the login is stored in Postgres. */
export interface LoginTarget {
  readonly name: string;
  readonly url: string;
  readonly scopes: readonly string[] | undefined;
}

/** Timeout for the person, in ms. Chosen: ten minutes. */
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
