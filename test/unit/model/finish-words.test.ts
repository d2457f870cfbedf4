import { describe, expect, it } from "vitest";
import { meaningOfFinish } from "../../../activities/model/answer.ts";

const WORDS: readonly (readonly [string, readonly string[]])[] = [
  [
    "stop",
    [
      "stop",
      "STOP",
      "Stop",
      "eos",
      "EOS",
      "eos_token",
      "end_turn",
      "END_TURN",
      "endTurn",
      "end-of-turn",
      "<|im_end|>",
      "<|eot_id|>",
      "</s>",
      "complete",
      "COMPLETED",
      "finished",
      "FinishReason.STOP",
      "FINISH_REASON_STOP",
      "stop_sequence",
      "done",
    ],
  ],
  [
    "length",
    [
      "length",
      "LENGTH",
      "max_tokens",
      "MAX_TOKENS",
      "maxTokens",
      "max_new_tokens",
      "token_limit_reached",
      "truncated",
      "model_context_window_exceeded",
      "max_output_reached",
    ],
  ],
  [
    "content-filter",
    [
      "content_filter",
      "SAFETY",
      "sensitive",
      "refusal",
      "content_filtered",
      "PROHIBITED_CONTENT",
      "guardrail_intervened",
      "BLOCKLIST",
      "moderation",
    ],
  ],
  [
    "error",
    [
      "error",
      "ERROR",
      "abort",
      "aborted",
      "network_error",
      "engine_overloaded",
      "insufficient_system_resource_error",
      "MALFORMED_FUNCTION_CALL",
      "rate_limit",
      "timeout",
      "timed_out",
    ],
  ],
  ["tool-calls", ["tool_calls", "TOOL_CALLS", "tool_use", "function_call", "toolUse"]],
  ["other", ["OTHER", "unknown", "FINISH_REASON_UNSPECIFIED"]],
];

describe.each(WORDS)("%s", (meaning, words) => {
  it.each(words)("is meant by %s", (word) => {
    expect(meaningOfFinish(word)).toBe(meaning);
    expect(meaningOfFinish(word.toUpperCase())).toBe(meaning);
    expect(meaningOfFinish(word.toLowerCase())).toBe(meaning);
  });
});

it.each(["banana", "42", "hit_the_road", ""])("the word %j is not known", (word) => {
  expect(meaningOfFinish(word)).toBeUndefined();
});
