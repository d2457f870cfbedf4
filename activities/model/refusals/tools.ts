/** Handles tools whose schemas make a provider refuse the whole request: the request is repeated without them. */
import type { ToolSpec } from "../../contract/tools.ts";
import type { Endpoint } from "../endpoint.ts";
import { readErrorFacts } from "../error-facts.ts";
import { isRefusal, type ModelAnswer, type ModelError, type ModelRequest } from "../model.ts";
import { type Ask, RefusalMemory, type Refusals } from "./memory.ts";
import { suspectTools } from "./suspect-tools.ts";

export class ToolRefusals implements Refusals {
  readonly #memory = new RefusalMemory();

  async ask(request: ModelRequest, endpoint: Endpoint, ask: Ask): Promise<ModelAnswer> {
    const remember = (tools: readonly ToolSpec[], error: unknown) => {
      for (const tool of tools) this.#memory.add(endpoint, textOf(tool), String(error));
    };
    for (;;) {
      const out = this.#memory.isEmpty
        ? []
        : request.tools.filter(
            (tool) => tool.isForeign === true && this.#memory.why(endpoint, textOf(tool)) !== undefined,
          );
      const asked = await refusalOf(() => askWithout(request, out, ask));
      if ("answer" in asked) return asked.answer;
      const left = request.tools.filter((tool) => !out.includes(tool));
      const { named, guesses } = suspectTools(readErrorFacts(asked.cause), left);
      remember(named, asked);
      if (named.length > 0) continue;
      for (const guess of guesses) {
        const next = await refusalOf(() => askWithout(request, [...out, ...guess], ask));
        if (!("answer" in next)) continue;
        remember(guess, asked);
        return next.answer;
      }
      throw asked;
    }
  }
}

const textOf = ({ name, inputSchema }: ToolSpec): string => JSON.stringify([name, inputSchema]);

async function askWithout(request: ModelRequest, out: readonly ToolSpec[], ask: Ask): Promise<ModelAnswer> {
  if (out.length === 0) return ask(request);
  const answer = await ask({ ...request, tools: request.tools.filter((tool) => !out.includes(tool)) });
  return { ...answer, refusedTools: out.map(({ name }) => name) };
}

/** @throws errors that are not refusals */
async function refusalOf(ask: () => Promise<ModelAnswer>): Promise<ModelError | { answer: ModelAnswer }> {
  try {
    return { answer: await ask() };
  } catch (error) {
    if (isRefusal(error)) return error;
    throw error;
  }
}
