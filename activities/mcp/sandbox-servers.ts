/** Servers that are programs in the session's sandbox, under its supervisor: they outlive workers and end with the sandbox. */
import type { Client, DiscoverResult, JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { McpServer } from "../config/mcp-settings.ts";
import { SandboxLost, type CommandState, type Sandbox } from "../sandbox/sandbox.ts";
import { messagesIn, EventPace } from "../process/event-pace.ts";
import { cutTail } from "../text/cut.ts";
import { workspacePath } from "../tools/paths.ts";
import { serverReason } from "./failures.ts";
import { McpFailure } from "./mcp.ts";
import { connected, createProtocolClient } from "./protocol-client.ts";
import { messageOnLine } from "./answers.ts";

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
  const lastOutput = state === undefined ? "" : await lastWords(sandbox, state);
  return new McpFailure(
    `${serverReason(error)}${lastOutput === "" ? "" : `; it last printed: ${lastOutput}`}`,
  );
}

async function lastWords(sandbox: Sandbox, { id, errKept }: CommandState): Promise<string> {
  const bytes = await sandbox.read(id, "err", Math.max(0, errKept - STDERR_BYTES), STDERR_BYTES);
  return cutTail(new TextDecoder().decode(bytes).trim(), 400);
}

const READ_BYTES = 1 << 20;
/** The most of one message; a longer line is dropped. Chosen: an image of 5 MB in base64 with room. */
const MAX_LINE_BYTES = 32 << 20;
const NEWLINE = 0x0a;

export interface Exchange {
  /** The command of the server's program. */
  readonly command: string;
  /** Unique in the session; the same for each attempt at the same exchange. */
  readonly prefix: string;
  /** Where in the program's output its answers may begin. */
  readonly from: number;
}

type ProgramSandbox = Pick<Sandbox, "feed" | "wait" | "read">;
type Id = string | number;

/**
 * The protocol over a program's standard input and output in the sandbox, for one exchange of many. Several exchanges, also of
 * several workers, share the program: each names its requests by its own prefix and receives only their answers.
 *
 * The same exchange may be made again after a worker's death: its requests have the same names, so the sandbox passes each on
 * once, and the answer is found in what the program has printed.
 */
export class SandboxTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;
  /** Set if the program has been greeted before: the client then begins without it. */
  sessionId?: string;
  /** Why it closed by itself. */
  failure: unknown;

  readonly #sandbox: ProgramSandbox;
  readonly #exchange: Exchange;
  readonly #stop = new AbortController();
  readonly #ids = new Map<string, Id>();
  #notifications = 0;
  #offset: number;
  #line: Uint8Array[] = [];
  #lineBytes = 0;
  /** The first line may be the end of another's message. */
  #isPartial: boolean;
  #reading: Promise<void> | undefined;
  #readAgain = false;
  readonly #pace = new EventPace();

  constructor(sandbox: ProgramSandbox, exchange: Exchange, isGreeted = false) {
    this.#sandbox = sandbox;
    this.#exchange = exchange;
    // From the character before: it shows whether the first line is whole.
    this.#offset = Math.max(0, exchange.from - 1);
    this.#isPartial = exchange.from > 0;
    if (isGreeted) this.sessionId = exchange.command;
  }

  async start(): Promise<void> {
    void this.#follow();
    void this.#read();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { command } = this.#exchange;
    const isRequest = "method" in message && "id" in message;
    const named = isRequest ? this.#named(message.id as Id) : undefined;
    const once = named ?? this.#onceFor(message);
    const line = Buffer.from(`${JSON.stringify(this.#outward(message))}\n`);
    const goesOn = await this.#sandbox.feed(command, { once }, line, { last: false });
    if (!goesOn) throw new McpFailure("its program has ended");
  }

  /** Every exchange sees the program's requests to its client: the first answer is passed on. */
  #onceFor(message: JSONRPCMessage): string {
    if (!("method" in message)) return `answer-${String(message.id)}`;
    return `${this.#exchange.prefix}-n${this.#notifications++}`;
  }

  async close(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.onclose?.();
  }

  /** The program's end ends the exchange. */
  async #follow(): Promise<void> {
    const { signal } = this.#stop;
    try {
      const state = await this.#sandbox.wait(this.#exchange.command, {
        signal,
        onOutput: () => void this.#read(),
      });
      await this.#read();
      this.failure ??= new McpFailure(
        state.kind === "exited" ? `its program ended with code ${state.exitCode}` : "its program has ended",
      );
    } catch (error) {
      if (!signal.aborted) this.failure ??= error;
    }
    await this.close();
  }

  /** Reads all output that is there; only one read runs at a time. */
  #read(): Promise<void> {
    this.#readAgain = true;
    this.#reading ??= this.#readOn()
      .catch((error: unknown) => {
        this.failure ??= error;
        return this.close();
      })
      .finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #readOn(): Promise<void> {
    while (this.#readAgain && !this.#stop.signal.aborted) {
      this.#readAgain = false;
      for (;;) {
        const bytes = await this.#sandbox.read(this.#exchange.command, "out", this.#offset, READ_BYTES);
        if (bytes.length === 0 || this.#stop.signal.aborted) break;
        this.#offset += bytes.length;
        this.#take(bytes);
        await this.#pace.after(messagesIn(bytes));
      }
    }
  }

  #take(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length;) {
      const end = bytes.indexOf(NEWLINE, from);
      const piece = bytes.subarray(from, end === -1 ? bytes.length : end);
      if (this.#lineBytes <= MAX_LINE_BYTES) this.#line.push(piece);
      this.#lineBytes += piece.length;
      if (end === -1) return;
      from = end + 1;
      const line =
        this.#lineBytes > MAX_LINE_BYTES || this.#isPartial ? undefined : Buffer.concat(this.#line);
      this.#line = [];
      this.#lineBytes = 0;
      this.#isPartial = false;
      if (line !== undefined) this.#hear(line.toString("utf8"));
    }
  }

  #hear(line: string): void {
    const message = this.#inward(messageOnLine(line));
    if (message !== undefined) this.onmessage?.(message);
  }

  #named(id: Id): string {
    const wire = `${this.#exchange.prefix}-${id}`;
    this.#ids.set(wire, id);
    return wire;
  }

  /** With our names for requests, in the id and wherever else a message names one. */
  #outward(message: JSONRPCMessage): object {
    if (!("method" in message)) return message;
    const params = message.params as Record<string, unknown> | undefined;
    const meta = params?.["_meta"] as Record<string, unknown> | undefined;
    const named = {
      ...params,
      ...(meta?.["progressToken"] === undefined
        ? {}
        : { _meta: { ...meta, progressToken: this.#named(meta["progressToken"] as Id) } }),
      ...(message.method === "notifications/cancelled"
        ? { requestId: this.#named(params?.["requestId"] as Id) }
        : {}),
    };
    return {
      ...message,
      ...("id" in message ? { id: this.#named(message.id as Id) } : {}),
      ...(params === undefined ? {} : { params: named }),
    };
  }

  /** What is meant for this exchange, with the client's own ids. */
  #inward(message: JSONRPCMessage | undefined): JSONRPCMessage | undefined {
    if (message === undefined) return undefined;
    if (!("method" in message)) {
      const id = this.#ids.get(String(message.id));
      return id === undefined ? undefined : { ...message, id };
    }
    if (message.method !== "notifications/progress") return message;
    const params = message.params as Record<string, unknown> | undefined;
    const progressToken = this.#ids.get(String(params?.["progressToken"]));
    return progressToken === undefined ? undefined : { ...message, params: { ...params, progressToken } };
  }
}
