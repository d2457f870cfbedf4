/** What all kinds of refusals share: this process's record of recent ones, and whether one says what it is about. */
import { createHash } from "node:crypto";
import type { Endpoint } from "../endpoint.ts";
import type { ModelAnswer, ModelRequest } from "../model.ts";

export type Ask = (request: ModelRequest) => Promise<ModelAnswer>;

/** Handles parts of one kind that make a provider refuse the whole request. */
export interface Refusals {
  /**
   * Asks without the parts that the provider refuses or recently refused.
   * @throws whatever `ask` throws otherwise
   */
  ask(request: ModelRequest, endpoint: Endpoint, ask: Ask): Promise<ModelAnswer>;
}

/** After this time a refused part is tried again. Chosen: a refused request costs only time. */
const AN_HOUR_MS = 3_600_000;

type Place = Pick<Endpoint, "baseUrl" | "modelId">;

/** Recent refusals, by provider and by the part that was refused. */
export class RefusalMemory<Why = string> {
  readonly #keptMs: number;
  readonly #known = new Map<string, { readonly untilMs: number; readonly why: Why }>();

  constructor(keptMs = AN_HOUR_MS) {
    this.#keptMs = keptMs;
  }

  get isEmpty(): boolean {
    return this.#known.size === 0;
  }

  /** @returns why it was refused; undefined if it was not, or not recently */
  why(server: Place, what: string): Why | undefined {
    // The usual case: nothing needs hashing.
    if (this.#known.size === 0) return undefined;
    const refusal = this.#known.get(keyOf(server, what));
    return refusal !== undefined && refusal.untilMs > performance.now() ? refusal.why : undefined;
  }

  add(server: Place, what: string, why: Why): void {
    const now = performance.now();
    for (const [key, { untilMs }] of this.#known) if (untilMs <= now) this.#known.delete(key);
    this.#known.set(keyOf(server, what), { untilMs: now + this.#keptMs, why });
  }
}

const keyOf = ({ baseUrl = "", modelId }: Place, what: string): string =>
  createHash("sha256").update(`${baseUrl}\n${modelId}\n${what}`).digest("base64");

/**
 * Source: reports on images and MCP tools. Google, "Request contains an invalid argument."; Moonshot, "Invalid request."; xAI,
 * "Client specified an invalid argument".
 */
const VAGUE =
  /^(?:request contains an invalid argument|client specified an invalid argument|invalid (?:request|argument)|bad request|provider returned error)\W*$/i;

/** Whether a refusal does not say what it is about. @param text the provider's own words */
export const isVague = (text: string): boolean => VAGUE.test(text.trim());
