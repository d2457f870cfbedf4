/** The model of a session that names none. Pure. */

/** With a key and no model named. Source: decision 0036. */
export const DEFAULT_MODEL = "gpt-6.1-sol";
/** Plays a written script if no model is available. */
export const REHEARSAL_MODEL = "rehearsal/flashcards";

/** With OpenAI's key, or a server that speaks for it, the default model; else undefined. */
export function defaultModel(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const isSet = (name: string) => (environment[name]?.trim() ?? "") !== "";
  return isSet("OPENAI_API_KEY") || isSet("OPENAI_BASE_URL") ? DEFAULT_MODEL : undefined;
}
