/** Where a provider's tokens come from, and how long one is kept. */
import { cutChars } from "../../contract/cut-text.ts";
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

/** A token is renewed at this share of its life. Source: ours. */
const RENEWED_AT = 0.8;
/** Longest that one question to a source may take. Source: ours. */
const MAX_ASK_MS = 10_000;
/** From this failure in a row on, a source counts as broken, so that a fallback model takes over. Source: ours. */
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
    const kept = this.#kept;
    if (kept !== undefined && kept.token !== failed && this.#options.now() < kept.renewAt) return kept.token;
    this.#asking ??= this.#ask(failed).finally(() => (this.#asking = undefined));
    return untilAborted(this.#asking, signal);
  }

  async #ask(failed: string | undefined): Promise<string> {
    const { source, onToken, now, askMs = MAX_ASK_MS } = this.#options;
    // Not a session's signal: others wait for the same token.
    const signal = AbortSignal.timeout(askMs);
    try {
      const asked = await untilAborted(source(signal, failed), signal);
      const at = now();
      if (asked.expiresAt <= at) throw new TokenTrouble("the token that it gave has already expired", CLOCK);
      this.#failures = 0;
      this.#kept = { ...asked, renewAt: at + RENEWED_AT * (asked.expiresAt - at) };
      onToken(asked.token);
      return asked.token;
    } catch (error) {
      const kept = this.#kept;
      // Renewed early, so that a source may be away for a while.
      if (kept !== undefined && kept.token !== failed && now() < kept.expiresAt) return kept.token;
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
