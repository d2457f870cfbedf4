/** An answer that is not JSON matching the session's schema. Pure: the workflow imports it. */

/** The note to the model before its one retry. */
export const mismatchNote = (why: string): string =>
  `Your last answer is not what was asked for: ${why}. Answer again with one JSON value that matches the JSON Schema in your instructions, and nothing else.`;
