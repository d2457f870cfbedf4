/** Tokens that a program of the operator prints: whatever a company's gateway wants. */
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { cutChars } from "../../contract/cut-text.ts";
import { isJsonObject } from "../../contract/json-object.ts";
import type { Environment } from "../../config/providers.ts";
import { TokenTrouble, type Token, type TokenSource } from "./token-source.ts";

export interface CommandOptions {
  readonly command: readonly string[];
  /** How long a token is good for if the command does not say. */
  readonly lifeMs: number;
  /** All that the program gets. */
  readonly environment: Environment;
  readonly now: () => number;
}

/** Source: ours; the longest real tokens have some 8 KB. */
const MAX_BYTES = 65_536;
const MAX_WORDS = 300;

/** No shell reads the command, and what the program started ends with it. */
export function commandTokens(options: CommandOptions): TokenSource {
  return async (signal) => tokenIn(await printed(options, signal), options);
}

function printed({ command, environment }: CommandOptions, signal: AbortSignal): Promise<string> {
  const [program = "", ...args] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: tmpdir(),
      env: { ...environment },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const out: Buffer[] = [];
    let bytes = 0;
    let words = "";
    const end = (error: Error) => {
      killGroup(child.pid);
      reject(error);
    };
    const onAbort = () => end(new TokenTrouble("the command did not end in time"));
    signal.addEventListener("abort", onAbort, { once: true });
    child.stdout.on("data", (part: Buffer) => {
      bytes += part.length;
      if (bytes > MAX_BYTES) end(new TokenTrouble("the command prints more than 64 KiB"));
      else out.push(part);
    });
    child.stderr.on("data", (part: Buffer) => {
      words = cutChars(words + part.toString("utf8"), MAX_WORDS);
    });
    child.once("error", (error) => end(new TokenTrouble(`the command cannot be started: ${error.message}`)));
    child.once("close", (code, killed) => {
      signal.removeEventListener("abort", onAbort);
      if (code === 0) return resolve(Buffer.concat(out).toString("utf8"));
      const said = words.trim() === "" ? "" : `: ${words.trim()}`;
      end(
        new TokenTrouble(`the command ended with ${code === null ? String(killed) : `code ${code}`}${said}`),
      );
    });
  });
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** A token on one line, or JSON `{"token", "expiresAt"}` with a time in seconds, ms or ISO 8601. */
function tokenIn(text: string, { lifeMs, now }: CommandOptions): Token {
  const line = text.trim();
  const usual = now() + lifeMs;
  if (line === "") throw new TokenTrouble("the command prints nothing");
  if (!line.startsWith("{")) return { token: checked(line), expiresAt: usual };
  const { token, expiresAt } = parsed(line);
  if (typeof token !== "string") throw new TokenTrouble("the command prints JSON without a token");
  return { token: checked(token), expiresAt: expiresAt === undefined ? usual : timeOf(expiresAt) };
}

function parsed(line: string): { readonly token?: unknown; readonly expiresAt?: unknown } {
  try {
    const value: unknown = JSON.parse(line);
    if (isJsonObject(value)) return value;
  } catch {
    // Said below.
  }
  throw new TokenTrouble("the command prints something that begins like JSON and is none");
}

/** A header takes it as it is. */
function checked(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new TokenTrouble("the command must print one token: one line, without blanks, in ASCII");
}

/** Larger numbers are ms: as seconds they would lie in the year 5138. */
const MAX_SECONDS = 1e11;

function timeOf(value: unknown): number {
  const number = typeof value === "number" ? value : Date.parse(String(value));
  const time = typeof value === "number" && value < MAX_SECONDS ? value * 1_000 : number;
  if (Number.isFinite(time)) return time;
  throw new TokenTrouble("the command prints an expiresAt that is no time");
}
