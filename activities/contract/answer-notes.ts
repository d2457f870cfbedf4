/** What the model is told about an answer that does not end its task. Pure: the workflow imports it. */

/** The note to the model before its one retry. @param why the answer is not JSON that matches the session's schema */
export const mismatchNote = (why: string): string =>
  `Your last answer is not what was asked for: ${why}. Answer again with one JSON value that matches the JSON Schema in your instructions, and nothing else.`;

/** @param tool the name of the one whose call was written as text */
export const wroteCallNote = (tool: string): string =>
  `Your last answer was text that looks like a call of ${tool}. Nothing was run: a call written as text is not a call. If you meant it, call ${tool} as a tool, in the form that your tools are given in. If not, answer in plain words.`;

/** @param reason the provider's own words */
export const emptyNote = (reason: string): string =>
  `Your last answer was empty. The provider says why: ${reason}. Answer again; if you meant to call a tool, write the call exactly by its schema.`;

export const CUT_NOTE =
  "Your last answers were all cut off by the output limit, without a call. Do not continue or repeat that text. Do the next step with a tool, large content in parts; or end with a short answer.";
