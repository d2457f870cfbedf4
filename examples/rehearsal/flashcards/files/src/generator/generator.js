// What a card generator is. Any object with this shape will do:
//
//   { name: string, generate(text, { count, signal }): Promise<{ front: string, back: string }[]> }
//
// Two are here: `rules` works offline, `openai` asks a language model. `drafts` is the only way the rest of the
// program calls one, because what comes back is not to be trusted: it is checked and cut to size.

import { createOpenAiGenerator } from "./openai.js";
import { createRuleGenerator } from "./rules.js";

/** Cards from a text, checked: no empty sides, no doubles, at most `count`. */
export async function drafts(generator, text, { count = 10, signal } = {}) {
  if (text.trim() === "") throw new RangeError("There is no text to make cards from.");
  const answer = await generator.generate(text, { count, signal });
  if (!Array.isArray(answer)) throw new TypeError(`The generator "${generator.name}" gave no list of cards.`);
  const seen = new Set();
  const cards = [];
  for (const one of answer) {
    const front = typeof one?.front === "string" ? one.front.trim() : "";
    const back = typeof one?.back === "string" ? one.back.trim() : "";
    const key = front.toLowerCase();
    if (front === "" || back === "" || seen.has(key)) continue;
    seen.add(key);
    cards.push({ front, back });
  }
  return cards.slice(0, count);
}

/**
 * The generator for an environment: a model where OPENAI_API_KEY is set, else the rules.
 * @param name "rules" or "openai" to choose; by default by environment
 */
export function chooseGenerator(env, fetch, name) {
  const chosen = name ?? (env.OPENAI_API_KEY ? "openai" : "rules");
  if (chosen === "rules") return createRuleGenerator();
  if (chosen !== "openai")
    throw new RangeError(`There is no generator "${chosen}"; there are: rules, openai.`);
  if (!env.OPENAI_API_KEY) throw new RangeError("The generator openai needs OPENAI_API_KEY.");
  return createOpenAiGenerator({
    apiKey: env.OPENAI_API_KEY,
    baseUrl: env.OPENAI_BASE_URL,
    model: env.RECALL_MODEL,
    fetch,
  });
}
