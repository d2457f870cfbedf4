/** What events carry of arguments and results: enough for a person's screen. Pure. */
import { cutChars } from "../contract/cut-text.ts";
import type { EventData } from "../store/event.ts";

/** Source: ours, some two screens. */
const MAX_CHARS = 8_000;

export function boundedInput(input: unknown): Pick<EventData["llm:tool-call"], "input" | "inputCut"> {
  const json = JSON.stringify(input) ?? "";
  return json.length <= MAX_CHARS ? { input } : { inputCut: cutChars(json, MAX_CHARS) };
}

/** @param handle names the call, so that the rest can be asked for */
export function boundedResult(
  text: string,
  handle: string,
): Pick<EventData["llm:tool-result"], "text" | "handle"> {
  return text.length <= MAX_CHARS ? { text } : { text: cutChars(text, MAX_CHARS), handle };
}
