/** Handles tools whose schemas make a provider refuse the whole request: the request is repeated without them. */
import type { ToolSpec } from "../../contract/tools.ts";
import type { Endpoint } from "../endpoint.ts";
import { readErrorFacts, type ErrorFacts } from "../error-facts.ts";
import { isRefusal, type ModelAnswer, type ModelError, type ModelRequest } from "../model.ts";
import { type Ask, RefusalMemory, type Refusals, isVague } from "./refusals.ts";

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
      const outcome = await refusalOf(() => askWithout(request, out, ask));
      if ("answer" in outcome) return outcome.answer;
      const left = request.tools.filter((tool) => !out.includes(tool));
      const { named, guesses } = suspectTools(readErrorFacts(outcome.cause), left);
      remember(named, outcome);
      if (named.length > 0) continue;
      for (const guess of guesses) {
        const next = await refusalOf(() => askWithout(request, [...out, ...guess], ask));
        if (!("answer" in next)) continue;
        remember(guess, outcome);
        return next.answer;
      }
      throw outcome;
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

/** Most servers whose tools are left out one after the other. Chosen: each costs a request. */
const ONE_BY_ONE = 4;

interface Suspects {
  /** The tools that the refusal names. */
  readonly named: readonly ToolSpec[];
  /** If the refusal names none: sets to try without, all of them last; none is empty. */
  readonly guesses: readonly (readonly ToolSpec[])[];
}

const NONE: Suspects = { named: [], guesses: [] };

/**
 * Which foreign tools of a request a provider's refusal may be about. Our own are never left out: no session works without them.
 * @param tools in the order of the request
 */
function suspectTools({ text, param = "" }: ErrorFacts, tools: readonly ToolSpec[]): Suspects {
  const name = NAMED.exec(text)?.[1];
  if (name !== undefined) return { ...NONE, named: foreign(tools.filter((tool) => tool.name === name)) };
  const inText = indexesIn(text);
  const indexes = inText.length > 0 ? inText : indexesIn(param);
  if (indexes.length > 0) return { ...NONE, named: foreign(tools.filter((_, at) => indexes.includes(at))) };
  const most = TOO_MANY.exec(text)?.[1];
  // Leave out the first tools: the last ones have just been found by a search.
  if (most !== undefined)
    return { ...NONE, named: foreign(tools).slice(0, Math.max(0, tools.length - Number(most))) };
  const all = foreign(tools);
  if (all.length === 0 || !(ABOUT_TOOLS.test(text) || isVague(text))) return NONE;
  const servers = [...Map.groupBy(all, serverOf).values()];
  const single = servers.length > 1 && !isVague(text) ? servers.slice(0, ONE_BY_ONE) : [];
  return { named: [], guesses: [...single, all] };
}

const foreign = (tools: readonly ToolSpec[]) => tools.filter(({ isForeign }) => isForeign === true);
const serverOf = ({ name }: ToolSpec): string => (name.includes("__") ? (name.split("__")[0] ?? "") : "");

/**
 * Source: OpenAI, "Invalid schema for function 'x'"; Groq, "invalid JSON schema for tool x"; Google, "FunctionDeclaration 'x' in the
 * request exceeds…", "Unable to submit request because `x` functionDeclaration `parameters.y` schema didn't specify…".
 */
const NAMED = /(?:schema for (?:function|tool) ['"`]?|FunctionDeclaration ['"]|because `)([\w-]+)/i;

/** Source: OpenAI, "Invalid 'tools': array too long. Expected an array with maximum length 128"; Groq, "maximum number of items is 128". */
const TOO_MANY = /\btools\b.*?maximum (?:length|number of items)(?: is)? (\d+)/i;

/**
 * Source: Moonshot, "tools.function.parameters is not a valid moonshot flavored json schema"; Google, "A FunctionDeclaration in the
 * request exceeds the maximum allowed nesting depth", "reference to undefined schema at properties.x", "The specified schema produces
 * a constraint that has too many states"; llama.cpp, "JSON schema conversion failed", "failed to parse grammar".
 */
const ABOUT_TOOLS = /\btools\b|function_?declaration|\bschemas?\b|\bgrammar\b/i;

/**
 * Source: reports on MCP tools. OpenAI: `tools[85].parameters` (as `param`); Anthropic: "tools.134.custom.input_schema…"; Bedrock:
 * "toolConfig.tools.26.toolSpec…"; Google, of each: "tools[0].function_declarations[12].parameters…"; Groq: "tools[3].function.parameters".
 */
function indexesIn(text: string): number[] {
  const google = [...text.matchAll(/function_?declarations\[(\d+)\]/gi)];
  const matches = google.length > 0 ? google : [...text.matchAll(/\btools(?:\[|\.)(\d+)(?:\]|\.)/g)];
  return matches.map(([, index]) => Number(index));
}
