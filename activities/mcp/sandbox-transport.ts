/**
 * The protocol over a program's standard input and output in the sandbox, for one exchange of many. Several exchanges, also of
 * several workers, share the program: each names its requests by its own prefix and receives only their answers.
 *
 * The same exchange may be made again after a worker's death: its requests have the same names, so the sandbox passes each on
 * once, and the answer is found in what the program has printed.
 */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { messageOnLine } from "./answers.ts";
import { McpFailure } from "./mcp.ts";

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
