/** Providers that do not show what a model thinks: asked again without, and not for a summary again for a while. */
import type { Endpoint } from "./endpoint.ts";
import { readErrorFacts } from "./error-facts.ts";
import { ModelError, type ModelAnswer, type ModelRequest } from "./model.ts";
import { summaryOf } from "./wires/wire.ts";

/** Source: OpenAI's refusal, "If you just verified, it can take up to 15 minutes for access to propagate." */
const REMEMBERED_MS = 15 * 60_000;

export class SummaryRefusals {
  readonly #until = new Map<string, number>();

  /**
   * Asks once more, without a summary of the thoughts, if the provider refuses a request for that alone.
   * @throws whatever `ask` throws otherwise
   */
  async ask(
    request: ModelRequest,
    { baseUrl = "", modelId }: Endpoint,
    ask: (request: ModelRequest) => Promise<ModelAnswer>,
  ): Promise<ModelAnswer> {
    if (summaryOf(request.target) === null) return ask(request);
    const place = `${baseUrl} ${modelId}`;
    if ((this.#until.get(place) ?? 0) <= performance.now()) {
      try {
        return await ask(request);
      } catch (error) {
        if (!isRefusedSummary(error)) throw error;
      }
      this.#until.set(place, performance.now() + REMEMBERED_MS);
    }
    return { ...(await ask(withoutSummary(request))), summaryRefused: true };
  }
}

function withoutSummary({ target, ...request }: ModelRequest): ModelRequest {
  return { ...request, target: { ...target, reasoning: { ...target.reasoning, summary: "none" } } };
}

/** OpenAI's words to organisations that are not verified; routers pass the words on and lose the parameter's name. */
function isRefusedSummary(error: unknown): boolean {
  if (!(error instanceof ModelError) || error.class !== "rejected") return false;
  const { param, text } = readErrorFacts(error.cause);
  return param === "reasoning.summary" || /verified to generate reasoning summar/i.test(text);
}
