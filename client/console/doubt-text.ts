/** What people are told where a provider's token counts are not believed. */
import { tokens } from "./format.ts";

/** @param billedTokens of the newest request; undefined where that is not at hand */
export function doubtText(billedTokens?: number): string {
  const count =
    billedTokens === undefined
      ? "The server's token counts"
      : `The server counts ${tokens(billedTokens)} tokens, which`;
  const verb = billedTokens === undefined ? "contradict" : "contradicts";
  return `${count} ${verb} the size of this session: it may cut requests to its own window without a word. Longhaul's own count is used; longhaul doctor shows the server's window, and models.<id>.contextWindow sets it.`;
}
