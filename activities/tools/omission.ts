/**
 * Lines that stand for code that was left out ("// ... rest of the code unchanged"). Written to a file, they would delete that code,
 * so the editing tools refuse them. Source: survey of coding agents (Gemini).
 *
 * Prose is not meant: only a line that has nothing but the words of such a stand-in counts, with an ellipsis, or as a comment that
 * says of the code that it is unchanged.
 */
const COMMENT = /^(?:\/\/+|#+|--+|\/\*+|<!--|;+|%+|"""|''')\s*/;
/** Within a longer comment, or an item of a list. */
const STAR = /^\*+\s+/;
const COMMENT_TAIL = /\s*(?:\*\/|-->|"""|''')?$/;
const ELLIPSIS = /^\s*[([{]?\s*(?:\.{3,}|…)|(?:\.{3,}|…)\s*[)\]}]?\s*$/;

const CODE =
  "(?:code|methods?|functions?|class(?:es)?|files?|contents?|lines?|implementations?|imports?|logic|tests?|bod(?:y|ies)|blocks?|sections?|parts?|definitions?|declarations?|fields?|propert(?:y|ies)|props|members?|variables?|constants?|styles?|rules?|cases?|routes?|handlers?|helpers?|components?|markup|scripts?|config|configuration|settings|text|module|things?|everything|else)";
const SAME =
  "(?:unchanged|unmodified|untouched|the same|same|as (?:is|it is|it was|they are|they were|before|above)|omitted|left out|elided|here|above|below|not shown|no changes?|same as (?:before|above|original)|identical)";
const WHOSE = "(?:(?:the|this|that|your|our|all|all the|of the|of) )*";
const WHICH = "(?:(?:rest|remainder|remaining|existing|other|previous|unchanged|same|original|earlier) )";
const CODES = `(?:${CODE}(?:(?:,| and|,? or) |\\s))*${CODE}`;
const STATE = `(?:,? ?\\(?(?:(?:(?:is|are|stays?|remains?|goes?|continues?|kept|keep|for brevity|unchanged|exactly|all|and|from|to) )*${SAME}(?: for brevity)?)\\)?)`;

const STAND_IN = new RegExp(
  `^(?:${WHOSE}${WHICH}${WHOSE}(?:${WHICH})?${CODES}${STATE}*|${WHOSE}${CODES}${STATE}+|(?:the )?(?:rest|remainder|remaining|unchanged|same as (?:before|above)|as before)${STATE}*)$`,
  "i",
);
/** Without an ellipsis, the line must also say that nothing changes there. */
const SAYS_SAME =
  /\b(?:unchanged|unmodified|untouched|as (?:is|before)|(?:the|stays?|remains?) same|same as (?:before|above)|omitted|left out|no changes?)\b/i;

/** The first such line of `text` that is not in `before`; undefined if there is none. */
export function omissionLine(text: string, before: string): string | undefined {
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    if (line.length <= 120 && standsForCode(line) && !before.includes(line)) return line;
  }
  return undefined;
}

function standsForCode(line: string): boolean {
  const bare = line.replace(COMMENT, "").replace(STAR, "").replace(COMMENT_TAIL, "");
  const hasEllipsis = ELLIPSIS.test(bare);
  if (!hasEllipsis && !(COMMENT.test(line) && SAYS_SAME.test(bare))) return false;
  const words = bare
    .replace(/^[\s([{.…]+|[\s)\]}.…]+$/g, "")
    .replace(/\s*(?:\.{3,}|…)\s*/g, " ")
    .replace(/\s+/g, " ");
  return STAND_IN.test(words);
}
