/** Where a provider's tokens come from (a cloud's library, a program of the operator), and how long one is kept. */
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import type { Environment } from "../../config/providers.ts";
import { cutChars } from "../../text/cut.ts";
import { isJsonObject } from "../../text/json.ts";
import { ModelError } from "../model.ts";

export interface Token {
  readonly token: string;
  /** Wall clock, in ms. */
  readonly expiresAt: number;
}

/** @param failed the token that the server refused, if one was @throws TokenTrouble, or whatever the source's library throws */
export type TokenSource = (signal: AbortSignal, failed?: string) => Promise<Token>;

/** What a source's owner can do about it. */
export class TokenTrouble extends Error {
  override readonly name = "TokenTrouble";
  readonly fix: string | undefined;
  /** True if asking again cannot help, as without an optional package. */
  readonly isPermanent: boolean;

  constructor(message: string, { fix, isPermanent = false }: { fix?: string; isPermanent?: boolean } = {}) {
    super(message);
    this.fix = fix;
    this.isPermanent = isPermanent;
  }
}

/** A token is renewed at this share of its life. Chosen: a clock that is some minutes off does no harm. */
const RENEWED_AT = 0.8;
/** Longest that one question to a source may take. Chosen: a command line that asks its cloud takes some seconds. */
const MAX_ASK_MS = 10_000;
/** From this failure in a row on, a source counts as broken, so that a fallback model takes over. Chosen: one failure may be a moment's. */
const PERMANENT_FROM = 3;

interface Kept extends Token {
  readonly renewAt: number;
}

export interface KeptTokenOptions {
  readonly source: TokenSource;
  /** `providers.bedrock (aws-bedrock)`, for messages. */
  readonly name: string;
  readonly fix: string;
  /** Told of each new token before anyone gets it: it is a secret. */
  readonly onToken: (token: string) => void;
  readonly mask: (text: string) => string;
  /** Wall clock: tokens' ends are given in it. */
  readonly now: () => number;
  readonly askMs?: number;
}

/** The newest token of a source. However many wait, the source is asked once. */
export class KeptToken {
  readonly #options: KeptTokenOptions;
  #kept: Kept | undefined;
  #asking: Promise<string> | undefined;
  #failures = 0;

  constructor(options: KeptTokenOptions) {
    this.#options = options;
  }

  /**
   * A token that is good for a while.
   * @param failed the token that the server refused: not returned again, unless the source gives it once more
   * @throws ModelError: `unavailable` if the source fails, `credentials` from its third failure in a row on
   */
  async get(signal: AbortSignal, failed?: string): Promise<string> {
    signal.throwIfAborted();
    const current = this.#kept;
    if (current !== undefined && current.token !== failed && this.#options.now() < current.renewAt)
      return current.token;
    this.#asking ??= this.#ask(failed).finally(() => (this.#asking = undefined));
    return untilAborted(this.#asking, signal);
  }

  async #ask(failed: string | undefined): Promise<string> {
    const { source, onToken, now, askMs = MAX_ASK_MS } = this.#options;
    // Not a session's signal: others wait for the same token.
    const signal = AbortSignal.timeout(askMs);
    try {
      const fresh = await untilAborted(source(signal, failed), signal);
      const at = now();
      if (fresh.expiresAt <= at) throw new TokenTrouble("the token that it gave has already expired", CLOCK);
      this.#failures = 0;
      this.#kept = { ...fresh, renewAt: at + RENEWED_AT * (fresh.expiresAt - at) };
      onToken(fresh.token);
      return fresh.token;
    } catch (error) {
      const current = this.#kept;
      // Renewed early, so that a source may be away for a while.
      if (current !== undefined && current.token !== failed && now() < current.expiresAt)
        return current.token;
      throw this.#failed(signal.aborted ? new TokenTrouble(`no answer in ${askMs / 1_000} s`) : error);
    }
  }

  #failed(error: unknown): ModelError {
    const { name, fix, mask } = this.#options;
    this.#failures += 1;
    const known = error instanceof TokenTrouble ? error : undefined;
    const isPermanent = known?.isPermanent === true || this.#failures >= PERMANENT_FROM;
    const why = known?.message ?? (error instanceof Error ? error.message : String(error));
    const text = `${name} gives no token: ${why}. Nothing was asked. ${known?.fix ?? fix}`;
    return new ModelError(cutChars(mask(text), MAX_CHARS), {
      class: isPermanent ? "credentials" : "unavailable",
    });
  }
}

const MAX_CHARS = 1_000;
const CLOCK = { fix: "Check the clock of the worker's machine." };

/** @throws the signal's reason as soon as it is aborted, whatever the promise does */
function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/**
 * A package that only some operators need. It is not among ours.
 * @throws TokenTrouble with the command that installs it
 */
export async function optionalPackage<Module>(
  name: string,
  load: (name: string) => Promise<unknown>,
): Promise<Module> {
  try {
    return (await load(name)) as Module;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw error;
    throw new TokenTrouble(`the package ${name} is not installed`, {
      fix: `Install it beside Longhaul where the worker runs: npm install ${name}`,
      isPermanent: true,
    });
  }
}

export interface CommandOptions {
  readonly command: readonly string[];
  /** How long a token is good for if the command does not say. */
  readonly lifeMs: number;
  /** All that the program gets. */
  readonly environment: Environment;
  readonly now: () => number;
}

/** Chosen: the longest real tokens have some 8 KB. */
const MAX_BYTES = 65_536;
const MAX_WORDS = 300;

/** No shell reads the command, and what the program started ends with it. */
/** Tokens that a program of the operator prints: whatever a company's gateway wants. */
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
    let stderrText = "";
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
      stderrText = cutChars(stderrText + part.toString("utf8"), MAX_WORDS);
    });
    child.once("error", (error) => end(new TokenTrouble(`the command cannot be started: ${error.message}`)));
    child.once("close", (code, killed) => {
      signal.removeEventListener("abort", onAbort);
      if (code === 0) return resolve(Buffer.concat(out).toString("utf8"));
      const suffix = stderrText.trim() === "" ? "" : `: ${stderrText.trim()}`;
      end(
        new TokenTrouble(
          `the command ended with ${code === null ? String(killed) : `code ${code}`}${suffix}`,
        ),
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
