/** Messages to people about a provider's faults. */
import { listNames } from "./format.ts";
import { tokens } from "../../activities/text/format.ts";

/** Source: OpenAI's refusal, which asks for verification. */
export const REFUSED_SUMMARY =
  "The provider does not show this account what the model thinks (OpenAI shows it to verified organizations only). The session continues without it; with models.<id>.reasoning: {summary: none}, it is no longer requested.";

/** @param names of tools that the provider refuses */
export function refusedText(names: readonly string[]): string {
  return `The provider refuses requests with these tools, because of a schema or because there are too many: ${listNames(names)}. The model continues without them.`;
}

/** For implausible token counts of a provider. @param billedTokens of the newest request; undefined if unknown */
export function doubtText(billedTokens?: number): string {
  const count =
    billedTokens === undefined
      ? "The server's token counts"
      : `The server counts ${tokens(billedTokens)} tokens, which`;
  const verb = billedTokens === undefined ? "contradict" : "contradicts";
  return `${count} ${verb} the size of this session: it may silently cut requests to its own window. Longhaul uses its own count instead; longhaul doctor shows the server's window, and models.<id>.contextWindow sets it.`;
}
