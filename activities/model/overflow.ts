/**
 * How providers say that a request does not fit, as data. Every row has a text that was really seen.
 * Source: pi's overflow.ts, OpenHands' classifier, the providers' documentation [case 12].
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
    pattern: /exceeds? (?:the |this )?(?:model(?:'?s)? )?(?:maximum )?context (?:window|length|size)/i,
    example: "Your input exceeds the context window of this model. Please adjust your input and try again.",
  },
  {
    pattern: /input length \(?\d[\d,]*\)? exceeds model'?s maximum context length/i,
    example: "Input length (41000) exceeds model's maximum context length (32768).",
  },
  {
    // llama-cpp-python.
    pattern: /requested tokens \(\d+\) exceeds? context window of/i,
    example: "Requested tokens (5120) exceed context window of 4096",
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
    // Only about tokens: servers use the same words for limits on images and file sizes.
    pattern: /tokens?\b[^.]{0,60} exceeds? the limit of \d[\d,]*/i,
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
    // vLLM.
    pattern: /longer than the maximum model length of \d+/i,
    example: "The decoder prompt (length 40960) is longer than the maximum model length of 32768.",
  },
  {
    // vLLM, if the prompt leaves no room for an answer.
    pattern: /max_(?:completion_)?tokens must be at least 1, got -\d+/i,
    example: "max_tokens must be at least 1, got -1234.",
  },
  {
    // OpenAI, with a limit set in the project.
    pattern: /input tokens exceeds? the configured limit of \d[\d,]* tokens/i,
    example:
      "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 280016 tokens.",
  },
  {
    pattern: /exceeds? the maximum (?:allowed )?input length(?: of)? \(?\d/i,
    example: "The input (210000 tokens) exceeds the maximum allowed input length of 202752 tokens.",
  },
  {
    // LM Studio; the odd order of words is its own.
    pattern: /trying to keep the first \d+ tokens when context the overflows/i,
    example:
      "Trying to keep the first 14538 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
  },
  {
    // LM Studio, when the answer fills the window.
    pattern: /reached context length of \d+ tokens with model/i,
    example:
      "Reached context length of 4096 tokens with model (arch: qwen3) that does not currently support mid-generation context overflow.",
  },
  {
    // LM Studio's MLX engine and llama.cpp, with status 500.
    pattern: /context size has been exceeded/i,
    example: "Context size has been exceeded.",
  },
  {
    // llama.cpp: the error's type.
    pattern: /exceed_context_size_error/i,
    example: "exceed_context_size_error",
  },
  {
    // llama.cpp before 2026.
    pattern: /input is too large to process/i,
    example: "input is too large to process. increase the physical batch size",
  },
  {
    // Alibaba's Qwen.
    pattern: /range of input length should be \[\d+, ?\d+\]/i,
    example: "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
  },
  {
    // Z.ai, code 1261.
    pattern: /prompt exceeds (?:the )?max(?:imum)? length/i,
    example: "Prompt exceeds max length",
  },
  {
    // Cohere.
    pattern: /too many tokens: total number of tokens/i,
    example: "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.",
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
    // OpenAI counts messages too, which a large window may hold more of.
    pattern: /'(?:messages|input)': array too long/i,
    example:
      "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2051 instead.",
  },
  {
    // A request larger than a minute's allowance never fits, however long one waits.
    pattern: /input or output tokens must be reduced/i,
    example:
      "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 42345. The input or output tokens must be reduced in order to run successfully.",
  },
  {
    // Chinese providers; "context", "input", "prompt" or "tokens" is too long or over the limit.
    pattern:
      /(?:上下文|输入|提示词?|消息|请求|tokens?)[^。，,.]{0,30}(?:超出|超过|过长|太长|超限|长度限制)|(?:超出|超过)[^。，,.]{0,30}(?:上下文|最大长度|长度限制|tokens?)/i,
    example: "输入内容过长，超过模型最大上下文长度限制",
  },
  {
    pattern: /max(?:imum)? message tokens/i,
    example: "Total tokens of image and text exceed max message tokens",
  },
  {
    // Volcengine and gRPC: the request's bytes.
    pattern: /exceed(?:s|ing|ed)? (?:the )?(?:max(?:imum)?|limit) (?:message |request |body )?size:? \d{5,}/i,
    example: "Request body length 4718592 exceeding max size 4194304",
  },
  {
    pattern: /request (?:entity|body) too large|payload too large/i,
    example: "413 Request Entity Too Large",
  },
];

/**
 * The slots of llama.cpp's server share one window: when the sum of their requests fills it, each of them is ended, however small.
 * The same words mean an overflow where the request itself is about as large as the window.
 */
export const sharedWindowPatterns: readonly OverflowPattern[] = [
  { pattern: /context size has been exceeded/i, example: "Context size has been exceeded." },
  {
    // llama.cpp of 2025 and earlier.
    pattern: /failed to find (?:free space|a (?:memory|kv) slot|a slot) (?:in|for) the (?:kv cache|batch)/i,
    example: "failed to find free space in the KV cache",
  },
];

/** Texts that mention too many tokens but mean a rate limit. */
export const rateLimitPatterns: readonly OverflowPattern[] = [
  {
    // Bedrock; with and without the time.
    pattern: /too many tokens(?: per (?:day|hour|minute))?, please wait/i,
    example: "Too many tokens, please wait before trying again.",
  },
  {
    pattern: /too many tokens per (?:day|hour|minute)/i,
    example: "Too many tokens per day, please wait before trying again.",
  },
  {
    pattern: /rate[ _]limit(?:ed|_error|_exceeded| reached| exceeded)?\b/i,
    example:
      "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000.",
  },
  { pattern: /too many requests/i, example: "Too Many Requests" },
  {
    pattern: /(?:token|request)s? per (?:min|day)/i,
    example: "Limit 10000 tokens per min. Please try again in 6s.",
  },
];

/**
 * Where the texts above name the limit: behind the words for it, or behind the sign of a comparison. Not the request's own size,
 * and neither bytes nor a number of messages.
 */
const WINDOW_WORDS = [
  /(?:context|token|model|configured|(?:max(?:imum)?(?: allowed)?|range of) (?:input|prompt|model))[ _](?:size|length|window|limit)(?: (?:is|of|should be))?(?: only)?:? ?(?:\[\d+, ?|\()?(\d+(?:,\d{3})*)(?!\d| \+)/gi,
  /(?:exceeds? the limit of|allowed \(|cannot exceed|Limit:?) ?(\d+(?:,\d{3})*)(?!\d| \+)/gi,
  /tokens`? ?(?:>|must be <=) ?(\d+(?:,\d{3})*)/gi,
  /\d \+ \d+ > (\d+(?:,\d{3})*)/gi,
  /with (\d+(?:,\d{3})*) maximum context length/gi,
];
/** Chosen: smaller windows are not served; such a number counts something else. */
const LEAST_WINDOW = 500;

/** The largest request, in tokens, that the words of an overflow name; undefined if they name none. */
export function windowInText(text: string): number | undefined {
  if (/array too long|string too long|per min|per day|\bbytes\b/i.test(text)) return undefined;
  const named = WINDOW_WORDS.flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, number = ""]) => Number(number.replaceAll(",", ""))),
  ).filter((tokens) => tokens >= LEAST_WINDOW);
  // A text may name the request's size in the same words; it is the larger one.
  return named.length === 0 ? undefined : Math.min(...named);
}

/** Whether a provider's words may mean that other requests have filled the window, which it does not name. */
export function isSharedWindowText(text: string): boolean {
  return windowInText(text) === undefined && sharedWindowPatterns.some(({ pattern }) => pattern.test(text));
}

/** Whether a provider's words mean that the request does not fit the window. */
export function isOverflowText(text: string): boolean {
  const matches = ({ pattern }: OverflowPattern) => pattern.test(text);
  if (/tokens must be reduced/i.test(text)) return true;
  return !rateLimitPatterns.some(matches) && overflowPatterns.some(matches);
}

/** Whether a provider's words mean that its rate limit was exceeded. */
export function isRateLimitText(text: string): boolean {
  return !isOverflowText(text) && rateLimitPatterns.some(({ pattern }) => pattern.test(text));
}
