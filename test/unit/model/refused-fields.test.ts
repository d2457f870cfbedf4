import { describe, expect, it } from "vitest";
import { readErrorFacts } from "../../../activities/model/error-facts.ts";
import { editBody, editFor, type FieldEdit } from "../../../activities/model/refusals/body-fields.ts";

const call = { id: "1", type: "function", function: { name: "bash", arguments: '{"store":1}' } };
const marked = { type: "text", text: "`store` is unsupported", cache_control: { type: "ephemeral" } };
const schema = { type: "object", properties: { store: {}, cache_control: {}, temperature: {} } };
const CHAT = {
  model: "m",
  messages: [
    { role: "system", content: [marked] },
    { role: "user", content: [marked] },
    { role: "assistant", content: null, tool_calls: [call], reasoning_content: "Hm." },
    { role: "tool", tool_call_id: "1", content: "ok" },
    { role: "assistant", content: "Done.", reasoning: "So." },
  ],
  tools: [{ type: "function", function: { name: "bash", parameters: schema, strict: false } }],
  tool_choice: "auto",
  max_tokens: 1_000,
  temperature: 0.2,
  reasoning_effort: "low",
  parallel_tool_calls: true,
  prompt_cache_key: "s",
  service_tier: "flex",
  store: false,
  stream: true,
  stream_options: { include_usage: true },
};
const RESPONSES = {
  model: "m",
  input: [{ role: "user", content: "Hi." }],
  tools: [{ type: "function", name: "bash", parameters: schema }],
  max_output_tokens: 1_000,
  store: false,
  include: ["reasoning.encrypted_content"],
  reasoning: { effort: "low", summary: "auto" },
  prompt_cache_key: "s",
  stream: true,
};
const MESSAGES = {
  model: "m",
  max_tokens: 1_000,
  system: [marked],
  messages: [{ role: "user", content: [marked] }],
  tools: [{ name: "bash", input_schema: schema, cache_control: { type: "ephemeral" } }],
  thinking: { type: "adaptive", display: "summarized" },
  output_config: { effort: "low" },
  stream: true,
};
const GEMINI = {
  contents: [{ role: "user", parts: [{ text: "Hi." }] }],
  tools: [{ functionDeclarations: [{ name: "bash", parameters: schema }] }],
  generationConfig: {
    maxOutputTokens: 1_000,
    thinkingConfig: { includeThoughts: true, thinkingLevel: "low" },
  },
  toolConfig: { functionCallingConfig: { mode: "NONE" } },
};

const facts = (error: string | object) => {
  const body = typeof error === "string" ? { error: { message: error } } : error;
  return readErrorFacts({ statusCode: 400, responseBody: JSON.stringify(body) });
};
const said = (edit: FieldEdit | undefined) =>
  edit && `${edit.type} ${edit.name}${edit.type === "renamed" ? ` ${edit.to}` : ""}`;
const detail = (...loc: unknown[]) => ({
  detail: [
    {
      type: "extra_forbidden",
      loc: ["body", ...loc],
      msg: "Extra inputs are not permitted",
      input: "`store`",
    },
  ],
});
const openai = (message: string, param: string | null) => ({ error: { message, param, code: null } });

describe("a refusal names one of our fields", () => {
  it.each<[object, string | object, string]>([
    // OpenAI and Azure
    [
      RESPONSES,
      openai("Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key"),
      "without prompt_cache_key",
    ],
    [
      RESPONSES,
      "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
      "without reasoning.effort",
    ],
    [RESPONSES, { detail: "Unsupported parameter: max_output_tokens" }, "without max_output_tokens"],
    [RESPONSES, "Unsupported parameter: include", "without include"],
    [
      CHAT,
      openai(
        "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
        "temperature",
      ),
      "without temperature",
    ],
    [
      CHAT,
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      "renamed max_tokens max_completion_tokens",
    ],
    [
      { ...CHAT, max_tokens: undefined, max_completion_tokens: 9 },
      "Unrecognized request argument supplied: max_completion_tokens",
      "renamed max_completion_tokens max_tokens",
    ],
    [CHAT, "Unrecognized request argument supplied: parallel_tool_calls", "without parallel_tool_calls"],
    [CHAT, "Unrecognized request arguments supplied: store", "without store"],
    [
      CHAT,
      "Additional properties are not allowed ('stream_options' was unexpected) - 'messages'",
      "without stream_options",
    ],
    // vLLM, FastAPI, Mistral
    [
      CHAT,
      "[{'type': 'extra_forbidden', 'loc': ('body', 'service_tier'), 'msg': 'Extra inputs are not permitted', 'input': 'store'}]",
      "without service_tier",
    ],
    [CHAT, detail("messages", 2, "assistant", "reasoning_content"), "without-everywhere reasoning_content"],
    [CHAT, detail("reasoning_effort"), "without reasoning_effort"],
    // Groq, Cerebras, DeepSeek, Moonshot, Ollama, xAI
    [
      CHAT,
      "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
      "without-everywhere reasoning_content",
    ],
    [CHAT, "property 'store' is unsupported", "without store"],
    [
      CHAT,
      "messages.2.assistant.reasoning_content: property is unsupported",
      "without-everywhere reasoning_content",
    ],
    [
      CHAT,
      "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
      "with-reasoning reasoning_content",
    ],
    [
      CHAT,
      "The `reasoning_content` in the thinking mode must be passed back to the API.",
      "with-reasoning reasoning_content",
    ],
    [
      CHAT,
      "Missing `reasoning_content` field in the assistant message at message index 4.",
      "with-reasoning reasoning_content",
    ],
    [CHAT, "deepseek-reasoner does not support this tool_choice", "without tool_choice"],
    [CHAT, "invalid temperature: only 1 is allowed for this model", "without temperature"],
    [CHAT, '"qwen2.5" does not support thinking', "without reasoning_effort"],
    [
      CHAT,
      "Model grok-4 does not support parameter reasoningEffort. Argument not supported on this model: reasoning_effort",
      "without reasoning_effort",
    ],
    [
      CHAT,
      "messages.1.content.0.cache_control: Extra inputs are not permitted",
      "without-everywhere cache_control",
    ],
    [CHAT, 'json: unknown field "include_usage"', "without stream_options.include_usage"],
    [CHAT, "tools.0.function.strict: Extra inputs are not permitted", "without-everywhere strict"],
    // Anthropic and what is compatible with it
    [MESSAGES, "adaptive thinking is not supported on this model", "without thinking"],
    [
      MESSAGES,
      "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'",
      "without thinking",
    ],
    [MESSAGES, "thinking.type: Input should be 'enabled' or 'disabled'", "without thinking"],
    [MESSAGES, "invalid thinking type: adaptive", "without thinking"],
    [MESSAGES, "thinking.display: Extra inputs are not permitted", "without thinking.display"],
    [MESSAGES, "output_config: Extra inputs are not permitted", "without output_config"],
    [
      MESSAGES,
      "system.0.cache_control.ttl: Extra inputs are not permitted",
      "without-everywhere cache_control",
    ],
    // Google
    [
      GEMINI,
      "Invalid JSON payload received. Unknown name \"thinkingLevel\" at 'generation_config.thinking_config': Cannot find field.",
      "without generationConfig.thinkingConfig.thinkingLevel",
    ],
    [GEMINI, "Thinking level is not supported for this model.", "without generationConfig.thinkingConfig"],
    [
      GEMINI,
      'Invalid JSON payload received. Unknown name "tool_config": Cannot find field.',
      "without toolConfig",
    ],
  ])("%#: %j %s", (body, error, edit) => {
    expect(said(editFor(facts(error), JSON.parse(JSON.stringify(body)) as Record<string, unknown>))).toBe(
      edit,
    );
  });

  it.each<[object, string]>([
    [CHAT, "Unknown parameter: 'frobnicate'."],
    [CHAT, "Unsupported parameter: 'messages'."],
    [CHAT, "Invalid value for 'model'."],
    [CHAT, "Invalid 'tools': array too long."],
    [CHAT, "We store no text of this kind, and the reasoning behind it."],
    [CHAT, "max_tokens is too large: 32768. This model allows at most 16384 completion tokens"],
    [CHAT, "reasoning_effort is required"],
    [MESSAGES, "max_tokens: Extra inputs are not permitted"],
    [MESSAGES, "messages.0.content: text content blocks must be non-empty"],
    [GEMINI, "Request contains an invalid argument."],
  ])("and not otherwise: %j %s", (body, error) => {
    expect(editFor(facts(error), body as Record<string, unknown>)).toBeUndefined();
  });
});

describe("a body is edited", () => {
  it("without a field, never in schemas, arguments or texts", () => {
    const edits: FieldEdit[] = [
      { type: "without", name: "store" },
      { type: "without", name: "stream_options.include_usage" },
      { type: "without-everywhere", name: "cache_control" },
      { type: "renamed", name: "max_tokens", to: "max_completion_tokens" },
    ];
    const { store: _, stream_options: _options, max_tokens: limit, ...rest } = CHAT;
    const plain = [{ type: "text", text: marked.text }];
    const [system, user, ...others] = CHAT.messages;
    const messages = [{ ...system, content: plain }, { ...user, content: plain }, ...others];
    expect(editBody(CHAT, edits)).toEqual({ ...rest, messages, max_completion_tokens: limit });
    expect(CHAT.store).toBe(false);
  });

  it("with the reasoning of every answer, or a blank", () => {
    const { messages } = editBody({ messages: [...CHAT.messages, { role: "assistant", content: "Hi." }] }, [
      { type: "with-reasoning", name: "reasoning_content" },
    ]) as { messages: { reasoning_content?: string }[] };
    expect(messages.map((message) => message.reasoning_content)).toEqual([
      undefined,
      undefined,
      "Hm.",
      undefined,
      "So.",
      " ",
    ]);
  });
});
