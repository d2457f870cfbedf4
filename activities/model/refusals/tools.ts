/** Tools whose schemas a provider refuses, and the whole request with them: it is asked again without them. */
import type { ToolSpec } from "../../contract/tools.ts";
import type { Endpoint } from "../endpoint.ts";
import { readErrorFacts } from "../error-facts.ts";
import { ModelError, type ModelAnswer, type ModelRequest } from "../model.ts";
import { RefusalMemory } from "./memory.ts";

/** After it a tool is tried again: a refused request costs nothing but its time. Source: ours. */
const KEPT_MS = 3_600_000;

export class ToolRefusals {
  readonly #memory = new RefusalMemory(KEPT_MS);

  /**
   * Asks without those foreign tools that the provider refuses or refused lately.
   * @throws whatever `ask` throws otherwise
   */
  async ask(
    request: ModelRequest,
    endpoint: Endpoint,
    ask: (request: ModelRequest) => Promise<ModelAnswer>,
  ): Promise<ModelAnswer> {
    const isRefused = (tool: ToolSpec) =>
      tool.isForeign === true && this.#memory.why(endpoint, textOf(tool)) !== undefined;
    for (;;) {
      const out = request.tools.filter(isRefused);
      const tools = request.tools.filter((tool) => !out.includes(tool));
      try {
        const answer = await ask({ ...request, tools });
        return out.length === 0 ? answer : { ...answer, refusedTools: out.map(({ name }) => name) };
      } catch (error) {
        const refused = refusedTools(error, tools);
        if (refused.length === 0) throw error;
        for (const tool of refused) this.#memory.add(endpoint, textOf(tool), String(error));
      }
    }
  }
}

const textOf = ({ name, inputSchema }: ToolSpec): string => JSON.stringify([name, inputSchema]);

/** Source: OpenAI, "Invalid 'tools': array too long. Expected an array with maximum length 128"; Groq, "maximum number of items is 128". */
const TOO_MANY = /\btools\b.*?maximum (?:length|number of items)(?: is)? (\d+)/i;

/** Which foreign tools of the request a refusal is about. Our own are never left out: no session works without them. */
function refusedTools(error: unknown, tools: readonly ToolSpec[]): ToolSpec[] {
  if (!(error instanceof ModelError) || error.class !== "rejected") return [];
  const { param = "", text } = readErrorFacts(error.cause);
  const most = TOO_MANY.exec(text)?.[1];
  // The first of them: the last are those that a search has just found.
  if (most !== undefined)
    return tools.filter(({ isForeign }) => isForeign).slice(0, Math.max(0, tools.length - Number(most)));
  const places = placesIn(text);
  const named = /schema for (?:function|tool) '?([\w-]+)/i.exec(text)?.[1];
  const all = places.length > 0 ? places : placesIn(param);
  return tools.filter(
    (tool, place) =>
      tool.isForeign === true && (named === undefined ? all.includes(place) : named === tool.name),
  );
}

/**
 * Source: reports on MCP tools. OpenAI: `tools[85].parameters` (as `param`) and "Invalid schema for function 'x'"; Anthropic:
 * "tools.134.custom.input_schema…"; Google, of each: "tools[0].function_declarations[12].parameters…"; Groq: "invalid JSON schema for
 * tool x, tools[3].function.parameters".
 */
function placesIn(text: string): number[] {
  const google = [...text.matchAll(/function_?declarations\[(\d+)\]/gi)];
  const found = google.length > 0 ? google : [...text.matchAll(/\btools(?:\[|\.)(\d+)(?:\]|\.)/g)];
  return found.map(([, place]) => Number(place));
}
