import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { expect, it } from "vitest";
import { DEFAULT_IMAGE } from "../../../activities/config/sandbox-settings.ts";
import { systemPrompt } from "../../../activities/config/system-prompt.ts";
import { prefixWith } from "../../../activities/context/request.ts";
import { createToolRegistry, toolRegistry, toolSpecs } from "../../../activities/tools/index.ts";

const MAX_TOKENS = 2_800;
const TASK =
  "Make the tests of the parser pass. The failing ones are about nested quotes; do not change their text.";

const system = systemPrompt({ instructions: undefined, config: { sandbox: { image: DEFAULT_IMAGE } } });
/** For planning sessions, which cannot write; for those with services; for those that stay with a pull request. */
const SOMETIMES = ["exit_plan", "restart_service", "reply_review", "rerun_checks"];
/** All that any other session has at once. */
const tools = createToolRegistry([...toolRegistry.values()].filter(({ name }) => !SOMETIMES.includes(name)));

it("sends a task's first request, with every tool of a session, in at most 2,800 tokens", () => {
  const body = {
    model: "gpt-4o",
    messages: [
      { role: "system", content: system },
      { role: "user", content: TASK },
    ],
    tools: toolSpecs(tools).map(({ name, description, inputSchema: parameters }) => ({
      type: "function",
      function: { name, description, parameters },
    })),
    stream: true,
    stream_options: { include_usage: true },
  };
  expect(tools.size).toBe(19);
  expect(encode(JSON.stringify(body)).length).toBeLessThan(MAX_TOKENS);
  expect(prefixWith(system, tools).tokens).toBeLessThan(MAX_TOKENS);
});
