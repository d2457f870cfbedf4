/** An answer that is not JSON by the session's schema. Pure: the workflow imports it. */

/** Said to the model in front of the one more try. */
export const mismatchNote = (why: string): string =>
  `Your last answer is not what was asked for: ${why}. Answer again with one JSON value that is valid by the JSON Schema of your instructions, and nothing else.`;
