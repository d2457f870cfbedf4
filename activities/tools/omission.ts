/**
 * Lines that stand for code that was left out ("// ... rest of the code unchanged"). Written to a file, they would
 * delete that code, so the editing tools refuse them. Source: survey of coding agents (Gemini).
 */
const COMMENT_LEAD = /^(?:\/\/+|#+|--+|\/\*+|\*+|<!--|;+|%+|"""|''')?\s*/;
const COMMENT_TAIL = /\s*(?:\*\/|-->|"""|''')?$/;
const WORDS =
  /^(?:the\s+)?(?:rest|remaining|remainder|existing|other|previous|unchanged|same)\b[\w\s,'’-]*$/i;
const TELLING = /\b(?:rest of|remaining|remainder|existing|unchanged|previous|other|same as|as before)\b/i;
const SUBJECT =
  /\b(?:code|methods?|functions?|class(?:es)?|file|content|lines?|implementation|imports?|logic|tests?|unchanged|before|same|above|here|stays|remains)\b/i;

/** The first such line of `text` that is not in `before`; undefined if there is none. */
export function omissionLine(text: string, before: string): string | undefined {
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    if (line.length > 120 || !/\.\.\.|…|unchanged|as before/i.test(line)) continue;
    const bare = line.replace(COMMENT_LEAD, "").replace(COMMENT_TAIL, "");
    const inner = bare
      .replace(/^[([{]?\s*(?:\.{3,}|…)?\s*[([{]?/, "")
      .replace(/[)\]}]?\s*(?:\.{3,}|…)?\s*[)\]}.]*$/, "")
      .trim();
    if (WORDS.test(inner) && TELLING.test(inner) && SUBJECT.test(inner) && !before.includes(line))
      return line;
  }
  return undefined;
}
