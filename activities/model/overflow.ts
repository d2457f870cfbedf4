/**
 * How providers say that a request does not fit, as data. Every row has a text that was really seen.
 * Source: survey of coding agents, case 12 (pi overflow.ts, OpenHands classifier), provider documentation.
 */
export interface OverflowPattern {
  readonly pattern: RegExp;
  readonly example: string;
}

export const overflowPatterns: readonly OverflowPattern[] = [
  { pattern: /context_length_exceeded/i, example: "Error code: context_length_exceeded" },
  {
    pattern: /prompt is too long/i,
    example: "prompt is too long: 213462 tokens > 200000 maximum",
  },
  {
    pattern: /input is too long for requested model/i,
    example: "Input is too long for requested model.",
  },
  {
    pattern: /exceeds? the (?:model'?s? )?(?:maximum )?context (?:window|length|size)/i,
    example: "Your input exceeds the context window of this model. Please adjust your input and try again.",
  },
  {
    pattern: /input token count.*exceeds? the maximum/i,
    example: "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
  },
  {
    pattern: /maximum prompt length is \d+/i,
    example: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
  },
  {
    pattern: /reduce the length of the (?:messages|prompt|input)/i,
    example: "Please reduce the length of the messages or completion.",
  },
  {
    pattern: /maximum context length (?:is|of) \d[\d,]* ?tokens/i,
    example:
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 140213 tokens.",
  },
  {
    pattern: /exceeds? the limit of \d[\d,]*/i,
    example: "prompt token count of 151201 exceeds the limit of 128000",
  },
  {
    pattern: /exceeds? (?:the )?available context size/i,
    example:
      "the request exceeds the available context size. try increasing the context size or enable context shift",
  },
  {
    pattern: /greater than the context length/i,
    example: "tokens to keep from the initial prompt is greater than the context length",
  },
  {
    pattern: /exceeded model token limit/i,
    example: "Invalid request: Your request exceeded model token limit: 131072",
  },
  {
    pattern: /context window exceeds limit/i,
    example: "invalid params, context window exceeds limit (2013)",
  },
  {
    pattern: /too large for model with \d[\d,]* maximum context length/i,
    example: "Prompt contains 40960 tokens, too large for model with 32768 maximum context length",
  },
  {
    pattern: /longer than the (?:model'?s )?context (?:length|window)/i,
    example: "The prompt is longer than the model's context length.",
  },
  {
    pattern: /model_context_window_exceeded/i,
    example: "stop_reason: model_context_window_exceeded",
  },
  {
    pattern: /prompt too long; exceeded (?:max )?context length/i,
    example: "prompt too long; exceeded max context length by 4 tokens",
  },
  {
    pattern: /`?inputs`? tokens \+ `?max_new_tokens`? must be <=/i,
    example:
      "`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 8100 `inputs` tokens and 512 `max_new_tokens`",
  },
  {
    pattern: /input length and `?max_tokens`? exceed context limit/i,
    example:
      "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
  },
  {
    pattern: /string too long\..*maximum length 10485760/i,
    example:
      "Invalid 'input[3].output': string too long. Expected a string with maximum length 10485760, but got a string with length 12000000 instead.",
  },
  {
    // A request larger than a whole minute's allowance never fits, however long one waits.
    pattern: /input or output tokens must be reduced/i,
    example:
      "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 42345. The input or output tokens must be reduced in order to run successfully.",
  },
  {
    pattern: /request (?:entity|body) too large|payload too large/i,
    example: "413 Request Entity Too Large",
  },
];

/** Texts that speak of too many tokens and mean a rate. */
export const rateLimitPatterns: readonly OverflowPattern[] = [
  {
    pattern: /too many tokens per (?:day|hour|minute)/i,
    example: "Too many tokens per day, please wait before trying again.",
  },
  {
    pattern: /rate limit(?:ed| reached| exceeded)?\b/i,
    example:
      "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000.",
  },
  { pattern: /too many requests/i, example: "Too Many Requests" },
  {
    pattern: /(?:token|request)s? per (?:min|day)/i,
    example: "Limit 10000 tokens per min. Please try again in 6s.",
  },
];

/** Whether a provider's words mean that the request does not fit the window. */
export function isOverflowText(text: string): boolean {
  const matches = (one: OverflowPattern) => one.pattern.test(text);
  if (/tokens must be reduced/i.test(text)) return true;
  return !rateLimitPatterns.some(matches) && overflowPatterns.some(matches);
}

/** Whether a provider's words mean that too much was asked in too short a time. */
export function isRateLimitText(text: string): boolean {
  return !isOverflowText(text) && rateLimitPatterns.some(({ pattern }) => pattern.test(text));
}
