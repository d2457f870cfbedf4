/** One of the operator's programs on the worker, which speaks the protocol on its standard input and output. */
import { spawn, type ChildProcess } from "node:child_process";
import { tmpdir } from "node:os";
import { StringDecoder } from "node:string_decoder";
import { serializeMessage, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import type { WorkerProgramSettings } from "../config/mcp-settings.ts";
import { messagesIn, EventPace } from "../process/event-pace.ts";
import { cutTail } from "../text/cut.ts";
import { filledIn, type McpAccess } from "./access.ts";
import { messageOnLine } from "./answers.ts";
import { serverReason } from "./failures.ts";
import { McpFailure } from "./mcp.ts";
import { PARENT, parentMark } from "./orphan-programs.ts";

/** How long it has to end by itself. Source: the protocol's own library. */
const END_MS = 2_000;
const STDERR_CHARS = 2_000;
/** As for a program in the sandbox. */
const MAX_LINE_CHARS = 32 << 20;

/** It has its own process group, which ends with it, and only the listed variables of the worker's environment. */
export class WorkerProgram implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;

  readonly #settings: WorkerProgramSettings;
  readonly #access: McpAccess;
  readonly #decoder = new StringDecoder("utf8");
  readonly #pace = new EventPace();
  /** The pieces of a line that is not complete yet. */
  #line: string[] = [];
  #lineChars = 0;
  #child: ChildProcess | undefined;
  #ended: Promise<void> | undefined;
  #lastWords = "";

  constructor(settings: WorkerProgramSettings, access: McpAccess) {
    this.#settings = settings;
    this.#access = access;
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#settings;
    const variables = Object.entries(env).map(([name, value]) => [name, filledIn(this.#access, value)]);
    const child = spawn(command, args, {
      cwd: cwd ?? tmpdir(),
      env: { ...this.#access.base, ...Object.fromEntries(variables), [PARENT]: parentMark() },
      detached: true,
      stdio: "pipe",
    });
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      child.once("exit", () => {
        // What it started goes with it.
        this.#signal("SIGKILL");
        resolve();
        this.onclose?.();
      });
    });
    child.stdin.on("error", (error) => this.onerror?.(error));
    child.stdout.on("data", (bytes: Buffer) => {
      this.#hear(bytes);
      const wait = this.#pace.after(messagesIn(bytes));
      if (wait === undefined) return;
      child.stdout.pause();
      void wait.then(() => child.stdout.resume());
    });
    child.stderr.on("data", (bytes: Buffer) => {
      this.#lastWords = cutTail(this.#lastWords + bytes.toString("utf8"), STDERR_CHARS);
    });
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error) =>
        reject(new McpFailure(`its program was not started: ${serverReason(error)}`)),
      );
    });
  }

  /** What it printed last on its error output. */
  get lastWords(): string {
    return this.#lastWords.trim();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child ?? {};
    if (!stdin?.writable) throw new McpFailure("its program has ended");
    if (!stdin.write(serializeMessage(message))) await new Promise((resolve) => stdin.once("drain", resolve));
  }

  async close(): Promise<void> {
    if (this.#child?.pid === undefined) return;
    this.#child.stdin?.end();
    this.#signal("SIGTERM");
    const timer = setTimeout(() => this.#signal("SIGKILL"), END_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      if (this.#child?.pid !== undefined) process.kill(-this.#child.pid, signal);
    } catch {
      // The group has already ended.
    }
  }

  /** Programs print other things too. */
  #hear(bytes: Buffer): void {
    const [first = "", ...others] = this.#decoder.write(bytes).split("\n");
    for (const piece of [first, ...others.map((text) => `\n${text}`)]) {
      if (piece.startsWith("\n")) this.#endLine();
      this.#line.push(piece.replace(/^\n/, ""));
      this.#lineChars += piece.length;
    }
    if (this.#lineChars <= MAX_LINE_CHARS) return;
    this.onerror?.(new McpFailure("a line of its output is too long"));
    this.#signal("SIGKILL");
  }

  #endLine(): void {
    const message = messageOnLine(this.#line.join(""));
    this.#line = [];
    this.#lineChars = 0;
    if (message !== undefined) this.onmessage?.(message);
  }
}
