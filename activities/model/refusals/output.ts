/** Models that write less than they are assumed to: asked again for as much as their provider says. */
import type { Endpoint } from "../endpoint.ts";
import { readErrorFacts } from "../error-facts.ts";
import { ModelError, type ModelAnswer, type ModelRequest } from "../model.ts";
import { RefusalMemory } from "./memory.ts";

/** After it more is tried again: a refused request costs nothing but its time. Source: ours. */
const KEPT_MS = 3_600_000;

export class OutputRefusals {
  readonly #memory = new RefusalMemory(KEPT_MS);

  /**
   * Asks once more, for a shorter answer, if the provider refuses a request for the length of its answer.
   * @throws whatever `ask` throws otherwise
   */
  async ask(
    request: ModelRequest,
    endpoint: Endpoint,
    ask: (request: ModelRequest) => Promise<ModelAnswer>,
  ): Promise<ModelAnswer> {
    const known = Number(this.#memory.why(endpoint, "output") ?? Infinity);
    const asked = { ...request, maxOutputTokens: Math.min(request.maxOutputTokens, known) };
    try {
      return await ask(asked);
    } catch (error) {
      const most = mostTokens(error, asked.maxOutputTokens);
      if (most === undefined) throw error;
      this.#memory.add(endpoint, "output", String(most));
      return ask({ ...asked, maxOutputTokens: most });
    }
  }
}

/**
 * The limit that a refusal names: the largest number below what was asked for.
 * Source: OpenAI, "max_tokens is too large: 32768. This model supports at most 16384 completion tokens", "Invalid
 * 'max_output_tokens': integer above maximum value. Expected a value <= 16384"; Anthropic, "max_tokens: 128000 > 64000"; DeepSeek,
 * "the valid range of max_tokens is [1, 8192]"; Google, "from 1 (inclusive) to 65537 (exclusive)"; Groq, "must be less than or
 * equal to `8192`".
 */
function mostTokens(error: unknown, askedTokens: number): number | undefined {
  if (!(error instanceof ModelError) || error.class !== "rejected") return undefined;
  const { text, param = "" } = readErrorFacts(error.cause);
  if (!/max_?(?:completion_?|output_?|new_?)?tokens/i.test(`${text} ${param}`)) return undefined;
  const numbers = [...text.matchAll(/\b\d+\b/g)].map(([digits]) => Number(digits));
  const most = Math.max(0, ...numbers.filter((number) => number < askedTokens));
  return most > 1 ? most - (text.includes("(exclusive)") ? 1 : 0) : undefined;
}
