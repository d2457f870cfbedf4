/**
 * The schema of OpenAI's two wires as data: anything else is refused.
 * Source: openai/openai-openapi 2.3.0, commit f85dbe2 of 2026-08-21 (CreateResponse, CreateChatCompletionRequest and the
 * schemas of their items).
 */

/** Of both requests. */
const SHARED_PARAMETERS = [
  "metadata",
  "model",
  "moderation",
  "parallel_tool_calls",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "safety_identifier",
  "service_tier",
  "store",
  "stream",
  "stream_options",
  "temperature",
  "tool_choice",
  "tools",
  "top_logprobs",
  "top_p",
  "user",
];

export const PARAMETERS: Readonly<Record<"responses" | "chat", readonly string[]>> = {
  responses: [
    ...SHARED_PARAMETERS,
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "previous_response_id",
    "prompt",
    "reasoning",
    "text",
    "truncation",
  ],
  chat: [
    ...SHARED_PARAMETERS,
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "modalities",
    "n",
    "prediction",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "verbosity",
    "web_search_options",
  ],
};

/** Fields of objects within a request, by the parameter. */
export const OBJECT_FIELDS: Readonly<
  Record<"responses" | "chat", Readonly<Record<string, readonly string[]>>>
> = {
  responses: {
    reasoning: ["mode", "effort", "summary", "context", "generate_summary"],
    text: ["format", "verbosity"],
    stream_options: ["include_obfuscation"],
  },
  chat: { stream_options: ["include_usage", "include_obfuscation"] },
};

/** By `type` (Responses) or `role` (chat). */
export const ITEM_FIELDS: Readonly<
  Record<"responses" | "chat", Readonly<Record<string, readonly string[]>>>
> = {
  responses: {
    message: ["id", "type", "role", "content", "phase", "status"],
    reasoning: ["id", "type", "encrypted_content", "summary", "content", "status"],
    function_call: ["id", "type", "call_id", "caller", "namespace", "name", "arguments", "status"],
    function_call_output: ["id", "type", "call_id", "caller", "namespace", "name", "output", "status"],
    item_reference: ["id", "type"],
  },
  chat: {
    system: ["role", "content", "name"],
    developer: ["role", "content", "name"],
    user: ["role", "content", "name"],
    assistant: ["role", "content", "refusal", "name", "audio", "tool_calls", "function_call"],
    tool: ["role", "content", "tool_call_id"],
  },
};

/** By the `type` of a part; both wires. */
export const PART_FIELDS: Readonly<Record<string, readonly string[]>> = {
  input_text: ["type", "text", "prompt_cache_breakpoint"],
  input_image: ["type", "image_url", "file_id", "detail", "prompt_cache_breakpoint"],
  input_file: ["type", "file_id", "filename", "file_data", "file_url", "detail", "prompt_cache_breakpoint"],
  output_text: ["type", "text", "annotations", "logprobs"],
  refusal: ["type", "refusal"],
  text: ["type", "text", "prompt_cache_breakpoint"],
  image_url: ["type", "image_url", "prompt_cache_breakpoint"],
  file: ["type", "file", "prompt_cache_breakpoint"],
};

export const TOOL_FIELDS: Readonly<Record<"responses" | "chat", readonly string[]>> = {
  responses: [
    "type",
    "name",
    "description",
    "parameters",
    "output_schema",
    "strict",
    "defer_loading",
    "allowed_callers",
  ],
  chat: ["name", "description", "parameters", "strict"],
};

/** Prefixes of items' own ids. */
export const ID_PREFIXES: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  function_call_output: "fc",
};

/** Values by the parameter's path. */
export const VALUES: Readonly<Record<"responses" | "chat", Readonly<Record<string, readonly string[]>>>> = {
  responses: {
    "reasoning.effort": ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
    "reasoning.summary": ["auto", "concise", "detailed"],
    "text.verbosity": ["low", "medium", "high"],
    service_tier: ["auto", "default", "flex", "scale", "priority", "fast"],
    prompt_cache_retention: ["in_memory", "24h"],
    truncation: ["auto", "disabled"],
    tool_choice: ["none", "auto", "required"],
  },
  chat: {
    reasoning_effort: ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
    verbosity: ["low", "medium", "high"],
    service_tier: ["auto", "default", "flex", "scale", "priority", "fast"],
    prompt_cache_retention: ["in_memory", "24h"],
    tool_choice: ["none", "auto", "required"],
  },
};

export const INCLUDES: readonly string[] = [
  "file_search_call.results",
  "web_search_call.results",
  "web_search_call.action.sources",
  "message.input_image.image_url",
  "computer_call_output.output.image_url",
  "code_interpreter_call.outputs",
  "reasoning.encrypted_content",
  "message.output_text.logprobs",
];

export const IMAGE_DETAILS: Readonly<Record<"responses" | "chat", readonly string[]>> = {
  responses: ["low", "high", "auto", "original"],
  chat: ["low", "high", "auto"],
};

/** Maximum length of a cache key. Source: the service's own refusal (openai/codex#2000 and others); the schema has none. */
export const MAX_CACHE_KEY_CHARS = 64;
