/** Refusals that do not say what they are about. Pure. */

/**
 * Source: reports on images and MCP tools. Google, "Request contains an invalid argument."; Moonshot, "Invalid request."; xAI,
 * "Client specified an invalid argument".
 */
const VAGUE =
  /^(?:request contains an invalid argument|client specified an invalid argument|invalid (?:request|argument)|bad request|provider returned error)\W*$/i;

/** @param text the provider's own words */
export const isVague = (text: string): boolean => VAGUE.test(text.trim());
