/** Messages to people about a provider's faults. */
import { tokens } from "./format.ts";

/** Names on one line. Source: ours. */
const MAX_NAMES = 5;

/** Source: OpenAI's refusal, which asks for verification. */
export const REFUSED_SUMMARY =
  "The provider does not show this account what the model thinks (OpenAI shows it to verified organizations only). The session continues without it; models.<id>.reasoning: {summary: none} no longer asks for it.";

/** @param names of tools that the provider refuses */
export function refusedText(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES).join(", ");
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : "";
  return `The provider refuses requests with ${shown}${more}, for a schema among them or their number. The model goes without.`;
}

/** For implausible token counts of a provider. @param billedTokens of the newest request; undefined if unknown */
export function doubtText(billedTokens?: number): string {
  const count =
    billedTokens === undefined
      ? "The server's token counts"
      : `The server counts ${tokens(billedTokens)} tokens, which`;
  const verb = billedTokens === undefined ? "contradict" : "contradicts";
  return `${count} ${verb} the size of this session: it may silently cut requests to its own window. Longhaul's own count is used; longhaul doctor shows the server's window, and models.<id>.contextWindow sets it.`;
}
