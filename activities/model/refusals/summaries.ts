/** Providers that do not show a model's reasoning: asked again without a summary, which is then not requested for a while. */
import type { Endpoint } from "../endpoint.ts";
import { readErrorFacts } from "../error-facts.ts";
import { isRefusal, type ModelAnswer, type ModelError, type ModelRequest } from "../model.ts";
import { summaryOf } from "../wires/wire.ts";
import { type Ask, RefusalMemory, type Refusals } from "./memory.ts";

/** Source: OpenAI's refusal, "If you just verified, it can take up to 15 minutes for access to propagate." */
const KEPT_MS = 15 * 60_000;

export class SummaryRefusals implements Refusals {
  readonly #memory = new RefusalMemory(KEPT_MS);

  async ask(request: ModelRequest, endpoint: Endpoint, ask: Ask): Promise<ModelAnswer> {
    if (summaryOf(request.target) === null) return ask(request);
    if (this.#memory.why(endpoint, "summary") === undefined) {
      try {
        return await ask(request);
      } catch (error) {
        if (!isRefusedSummary(error)) throw error;
        this.#memory.add(endpoint, "summary", error.message);
      }
    }
    return { ...(await ask(withoutSummary(request))), summaryRefused: true };
  }
}

function withoutSummary({ target, ...request }: ModelRequest): ModelRequest {
  return { ...request, target: { ...target, reasoning: { ...target.reasoning, summary: "none" } } };
}

/** OpenAI's words to organisations that are not verified; routers pass the words on and lose the parameter's name. */
function isRefusedSummary(error: unknown): error is ModelError {
  if (!isRefusal(error)) return false;
  const { param, text } = readErrorFacts(error.cause);
  return param === "reasoning.summary" || /verified to generate reasoning summar/i.test(text);
}
