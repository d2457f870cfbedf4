/** Models whose output limit is lower than assumed: asked again with the limit that their provider names. */
import type { Endpoint } from "../endpoint.ts";
import { readErrorFacts } from "../error-facts.ts";
import { isRefusal, type ModelAnswer, type ModelRequest } from "../model.ts";
import { type Ask, RefusalMemory, type Refusals } from "./memory.ts";

export class OutputRefusals implements Refusals {
  readonly #memory = new RefusalMemory<number>();

  async ask(request: ModelRequest, endpoint: Endpoint, ask: Ask): Promise<ModelAnswer> {
    const known = this.#memory.why(endpoint, "output") ?? Infinity;
    const asked = { ...request, maxOutputTokens: Math.min(request.maxOutputTokens, known) };
    try {
      return await ask(asked);
    } catch (error) {
      const most = mostTokens(error, asked.maxOutputTokens);
      if (most === undefined) throw error;
      this.#memory.add(endpoint, "output", most);
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
  if (!isRefusal(error)) return undefined;
  const { text, param = "" } = readErrorFacts(error.cause);
  if (!/max_?(?:completion_?|output_?|new_?)?tokens/i.test(`${text} ${param}`)) return undefined;
  const numbers = [...text.matchAll(/\b\d+\b/g)].map(([digits]) => Number(digits));
  const most = Math.max(0, ...numbers.filter((number) => number < askedTokens));
  return most > 1 ? most - (text.includes("(exclusive)") ? 1 : 0) : undefined;
}
