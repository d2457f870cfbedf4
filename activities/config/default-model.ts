/** The model of a session that names none. Pure. */

/** Used if there is a key and no model is named. Source: decision 0036. */
export const DEFAULT_MODEL = "gpt-6.1-sol";
/** Plays a fixed script if no model is available. */
export const REHEARSAL_MODEL = "rehearsal/flashcards";

/** The default model if OpenAI's key or a compatible server is configured; otherwise undefined. */
export function defaultModel(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const isSet = (name: string) => (environment[name]?.trim() ?? "") !== "";
  return isSet("OPENAI_API_KEY") || isSet("OPENAI_BASE_URL") ? DEFAULT_MODEL : undefined;
}
