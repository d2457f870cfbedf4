/** Servers that are programs in the session's sandbox, under its supervisor: they outlive workers and end with the sandbox. */
import type { Client, DiscoverResult } from "@modelcontextprotocol/client";
import type { McpServer } from "../config/mcp-settings.ts";
import { SandboxLost, type CommandState, type Sandbox } from "../sandbox/sandbox.ts";
import { cutTail } from "../text/cut.ts";
import { workspacePath } from "../tools/paths.ts";
import { serverReason } from "./failures.ts";
import { McpFailure } from "./mcp.ts";
import { connected, createProtocolClient } from "./protocol-client.ts";
import { SandboxTransport } from "./sandbox-transport.ts";

/** Limit of a program's output; beyond it, the program is restarted. Chosen: hundreds of images. */
const MAX_OUTPUT_BYTES = 256 << 20;
const NEARLY_FULL_BYTES = MAX_OUTPUT_BYTES - (32 << 20);
const STDERR_BYTES = 2_000;
/** Before this revision a client greets a program first, which then knows its client. */
const FIRST_MODERN_ERA = "2026";

export interface SandboxServer {
  readonly name: string;
  readonly settings: McpServer;
  readonly sandbox: Sandbox;
}

export interface Program {
  /** Id of its command. */
  readonly id: string;
  /** Identifies the program among all, also after a restart of the sandbox. */
  readonly key: string;
  /** Bytes that it had printed by then. */
  readonly printed: number;
  /** It was started just now. */
  readonly isNew: boolean;
}

/** The server's running program, or a new one if it has ended or never ran in this sandbox. @throws McpFailure */
export async function runningProgram({ name, settings, sandbox }: SandboxServer): Promise<Program> {
  for (let number = 1; ; number += 1) {
    const id = `mcp-${name.replaceAll("_", ".")}-${number}`;
    const key = `${sandbox.identity.boot}/${id}`;
    const state = await sandbox.state(id);
    if (state === undefined) {
      const started = await sandbox.start({
        id,
        argv: [settings.command ?? "", ...(settings.args ?? [])],
        cwd: workspacePath(settings.cwd).absolute,
        env: settings.env ?? {},
        more: true,
        maxOutputBytes: MAX_OUTPUT_BYTES,
      });
      if (started.kind === "refused") throw new McpFailure(`its program was not started: ${started.reason}`);
      return { id, key, printed: started.kind === "running" ? started.outKept : 0, isNew: true };
    }
    if (state.kind !== "running") continue;
    if (state.outKept < NEARLY_FULL_BYTES) return { id, key, printed: state.outKept, isNew: false };
    await sandbox.kill(id);
  }
}

/** What the greeting of a program returned; the same for every exchange with it. */
type Greeting = { readonly kind: "legacy" } | { readonly kind: "modern"; readonly discover: DiscoverResult };

/** By program. Saves reading its first answers again. */
const greetings = new Map<string, Greeting>();
const MAX_GREETINGS = 1_000;

/**
 * Greets a program. It is greeted only once: a repeated greeting reads the earlier answer.
 * @param era the revision that it is known to speak
 * @returns a client that can list its tools
 */
async function greet(
  { settings, sandbox }: SandboxServer,
  program: Program,
  { era, signal }: { readonly era?: string; readonly signal: AbortSignal },
): Promise<Client> {
  const { startTimeout } = settings;
  const isLegacy = era !== undefined && era < FIRST_MODERN_ERA;
  const transport = new SandboxTransport(sandbox, { command: program.id, prefix: "init", from: 0 });
  // A program of the older revisions may not answer what it does not know: half of the time is left for its greeting.
  const client = createProtocolClient(isLegacy ? "legacy" : "auto", startTimeout / 2);
  try {
    await connected(client, transport, { timeout: startTimeout, signal });
  } catch (error) {
    throw await withLastOutput(sandbox, program.id, transport.failure ?? error);
  }
  const discover = client.getDiscoverResult();
  greetings.set(program.key, discover === undefined ? { kind: "legacy" } : { kind: "modern", discover });
  for (const oldest of greetings.keys()) {
    if (greetings.size <= MAX_GREETINGS) break;
    greetings.delete(oldest);
  }
  return client;
}

/**
 * Greets a program that was just started. Some end at the first question that they do not know: they are started again and
 * greeted the old way.
 */
export async function greetNew(
  server: SandboxServer,
  options: { readonly era?: string; readonly signal: AbortSignal },
): Promise<Client> {
  const program = await runningProgram(server);
  try {
    return await greet(server, program, options);
  } catch (error) {
    const ended = await server.sandbox.state(program.id);
    if (options.era !== undefined || ended?.kind !== "exited" || ended.outBytes > 0) throw error;
    const again = await runningProgram(server);
    return greet(server, again, { ...options, era: "2025" });
  }
}

/** A client for one call, which the program knows by `prefix`. @returns the client, and its transport, which knows how the program ended */
export async function clientFor(
  server: SandboxServer,
  program: Program,
  exchange: {
    readonly prefix: string;
    readonly from: number;
    readonly era: string;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly client: Client; readonly transport: SandboxTransport }> {
  const { prefix, from, era, signal } = exchange;
  if (!greetings.has(program.key)) await (await greet(server, program, { era, signal })).close();
  const greeting = greetings.get(program.key) ?? { kind: "legacy" };
  const transport = new SandboxTransport(
    server.sandbox,
    { command: program.id, prefix, from },
    greeting.kind === "legacy",
  );
  const client = await connected(createProtocolClient("legacy", 1), transport, { prior: greeting, signal });
  return { client, transport };
}

/** A failure with the program's last output. The sandbox's own failures are unchanged. */
export async function withLastOutput(sandbox: Sandbox, command: string, error: unknown): Promise<unknown> {
  if (error instanceof SandboxLost) return error;
  const state = await sandbox.state(command);
  const words = state === undefined ? "" : await lastWords(sandbox, state);
  return new McpFailure(`${serverReason(error)}${words === "" ? "" : `; it last printed: ${words}`}`);
}

async function lastWords(sandbox: Sandbox, { id, errKept }: CommandState): Promise<string> {
  const bytes = await sandbox.read(id, "err", Math.max(0, errKept - STDERR_BYTES), STDERR_BYTES);
  return cutTail(new TextDecoder().decode(bytes).trim(), 400);
}
