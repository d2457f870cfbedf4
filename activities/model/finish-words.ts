/** Reads the word with which a server says why an answer ended. Pure. */

/** What it means; `other`: it ended in another way than by itself; undefined: the word is not known. */
export type FinishMeaning = "stop" | "length" | "content-filter" | "error" | "tool-calls" | "other";

/** Words for "the model stopped by itself", in letters and digits only. Source: public reports on servers of the chat wire. */
const STOPPED: ReadonlySet<string> = new Set(
  `stop stopped stopsequence stoptoken endturn endofturn turnend eos eostoken eosfound endofsequence endoftext eot eotid eom eomid
  imend im end ended s complete completed done finish finished success succeeded normal natural ok`.split(
    /\s+/,
  ),
);

/**
 * Stems, the first that occurs in the word counts. A failure comes before the limits: `rate_limit`. A word that only says that
 * something else has happened is no regular end. Source: as above; Google's list of finish reasons.
 */
const STEMS: readonly (readonly [RegExp, FinishMeaning])[] = [
  [/malformed|unexpectedtool|toomanytool|missingthought/, "error"],
  [/toolcall|tooluse|functioncall|^tools?$|^functions?$/, "tool-calls"],
  [
    /filter|safety|sensitive|moderat|refus|block|policy|prohibit|recitation|spii|guardrail|flagged|unsafe|censor/,
    "content-filter",
  ],
  [
    /error|fail|abort|cancel|time(?:d)?out|interrupt|exception|overload|network|unavailable|ratelimit|disconnect|crash/,
    "error",
  ],
  [
    /length|maxtoken|max\w*token|tokenlimit|maxoutput|truncat|context(?:window|limit|full)|cutoff|budget/,
    "length",
  ],
  [
    /^(?:other|unknown|unspecified|finishreasonunspecified|finishreasonother|null|none|language|incomplete)$/,
    "other",
  ],
];

/** @param word as the server writes it, in any case: `eos`, `END_TURN`, `FinishReason.STOP`, `<|im_end|>` */
export function meaningOfFinish(word: string): FinishMeaning | undefined {
  const plain = word
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .replace(/^(?:finish|stop)reason(?=.)/, "");
  if (STOPPED.has(plain)) return "stop";
  return STEMS.find(([stem]) => stem.test(plain))?.[1];
}
