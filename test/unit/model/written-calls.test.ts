import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ToolSpec } from "../../../activities/contract/tools.ts";
import { writtenCalls } from "../../../activities/model/written-calls.ts";

const tool = (name: string, properties: Record<string, object>): ToolSpec => ({
  name,
  description: name,
  inputSchema: { type: "object", properties },
});
const string = { type: "string" };
const tools = [
  tool("bash", { command: string, timeout_seconds: { type: "integer" } }),
  tool("write_file", { path: string, content: string }),
];
const LS = { toolName: "bash", input: { command: "ls" } };
const json = '{"name": "bash", "arguments": {"command": "ls"}}';

/** Anthropic's form, with something before each tag's name. */
const claude = (mark: string) =>
  ["function_calls", 'invoke name="bash"', 'parameter name="command"']
    .map((tag) => `<${mark}${tag}>`)
    .join("\n") +
  "ls" +
  ["parameter", "invoke", "function_calls"].map((tag) => `</${mark}${tag}>`).join("\n");

/** By form; each asks for `ls`. */
const FORMS: Readonly<Record<string, string>> = {
  hermes: `<tool_call>\n${json}\n</tool_call>`,
  "hermes without its end": `<tool_call>\n${json}`,
  "hermes with an end mark": `<tool_call>${json}</tool_call><|im_end|>`,
  "hermes as function_call": `<function_call>${json}</function_call>`,
  "qwen coder":
    "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
  "qwen coder, bare": "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>",
  "qwen coder without its first tag":
    "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
  "llama function": '<function=bash>{"command": "ls"}</function>',
  "llama python tag": '<|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}<|eom_id|>',
  claude: claude(""),
  "claude with a prefix": claude("antml" + ":"),
  minimax: claude("minimax:"),
  dsml: claude("｜DSML｜"),
  "dsml that says what is a string": claude("｜DSML｜").replace('"command"', '"command" string="true"'),
  "claude, one call": '<invoke name="bash"><parameter name="command">ls</parameter></invoke>',
  "deepseek v3":
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{"command": "ls"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>',
  "deepseek v3.1":
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": "ls"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  kimi: '<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"command": "ls"}<|tool_call_end|><|tool_calls_section_end|>',
  glm: "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
  harmony: '<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{"command": "ls"}<|call|>',
  mistral: `[TOOL_CALLS][${json}]`,
  "mistral with a name": '[TOOL_CALLS]bash{"command": "ls"}',
  "mistral with args": '[TOOL_CALLS]bash[ARGS]{"command": "ls"}',
  "mistral with an id": '[TOOL_CALLS]bash[CALL_ID]a1b2c3d4e[ARGS]{"command": "ls"}',
  phi: `<|tool_call|>[${json}]<|/tool_call|>`,
  react: 'Action: bash\nAction Input: {"command": "ls"}',
  "bare json": json,
  "bare json with parameters": '{"name": "bash", "parameters": {"command": "ls"}}',
  "openai's own form":
    '[{"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": {"command": "ls"}}}]',
  "json in a fence": `\`\`\`json\n${json}\n\`\`\``,
  "hermes in a fence": `\`\`\`xml\n<tool_call>${json}</tool_call>\n\`\`\``,
  "json in a list": `[${json}]`,
  "tool as a tag": "<bash>\n<command>ls</command>\n</bash>",
};
/** Forms that begin a line. */
const LINES = ["tool as a tag", "react"];
const isMarkup = (form: string) => !/json|openai|in a fence/.test(form);

describe.each(Object.entries(FORMS))("%s", (form, text) => {
  it("is a call that was not made", () => {
    expect(writtenCalls(text, tools)).toEqual({ calls: [LS], isWhole: true });
    expect(writtenCalls(`\n\n${text}\n`, tools)).toEqual({ calls: [LS], isWhole: true });
  });

  it("is none if no such tool is there", () => {
    expect(writtenCalls(text, [tool("other", {})])).toBeUndefined();
  });

  it.each(["I look.\n\n", "First I look at the files: "])(
    "after %j counts if it is markup, and is not the whole",
    (says) => {
      const isSeen = isMarkup(form) && (!LINES.includes(form) || says.endsWith("\n"));
      expect(writtenCalls(says + text, tools)).toEqual(isSeen ? { calls: [LS], isWhole: false } : undefined);
    },
  );

  it("is left alone where prose, a fence or backticks quote it", () => {
    const fence = `The form is:\n\n\`\`\`\`\n${text}\n\`\`\`\`\n`;
    for (const quoted of [
      `${text}\n\nis how this model writes a call.`,
      fence,
      `${fence}\nNothing else is needed.`,
      `It writes \`${text.replaceAll("\n", " ").replaceAll("`", "")}\``,
    ])
      expect(writtenCalls(quoted, tools), quoted).toBeUndefined();
  });
});

it("several calls are read in their order", () => {
  const both =
    '[TOOL_CALLS][{"name":"bash","arguments":{"command":"ls"}},{"name":"write_file","arguments":{"path":"a"}}]';
  const twice = `<tool_call>${json}</tool_call>\n<tool_call>${json}</tool_call>`;
  expect(writtenCalls(both, tools)?.calls).toEqual([LS, { toolName: "write_file", input: { path: "a" } }]);
  expect(writtenCalls(twice, tools)?.calls).toEqual([LS, LS]);
});

it.each([
  `${json},\n${json}\n</tool_response>`,
  `<tool_call>${json}</tool_call>\n<tool_response>\na.txt\n</tool_response>\n<tool_call>${json}</tool_call>`,
  `${json}\n${json}\n<tool_result>\nThe files are a.txt and`,
  `\`\`\`json\n${json}\n\`\`\`\n\n\`\`\`json\n${json}\n\`\`\``,
])("calls with what a model makes up between and behind them are calls: %j", (text) => {
  expect(writtenCalls(text, tools)).toEqual({ calls: [LS, LS], isWhole: true });
});

it("a field is read as the tool's schema has it, and text keeps its lines", () => {
  const text =
    "<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\n42\n\n  x\n\n</parameter>\n</function>";
  expect(writtenCalls(text, tools)?.calls).toEqual([
    { toolName: "write_file", input: { path: "a.txt", content: "42\n\n  x\n" } },
  ]);
  const timed = '<invoke name="bash"><parameter name="timeout_seconds">30</parameter></invoke>';
  expect(writtenCalls(timed, tools)?.calls).toEqual([{ toolName: "bash", input: { timeout_seconds: 30 } }]);
});

it.each([
  "Done.",
  "",
  '{"name": "longhaul", "version": "1.0.0"}',
  '{"name": "bash", "description": "a shell"}',
  '[{"name": "bash", "arguments": {}}, {"name": "Ada"}]',
  '{"name": "Ada", "arguments": {"command": "ls"}}',
  "```json\n{}\n```",
  "Use <tool_call> tags around a call.",
  "The server lost <tool_call>.",
  "<b>bash</b>",
  "[1, 2, 3]",
])("%j is an answer", (text) => {
  expect(writtenCalls(text, tools)).toBeUndefined();
});

const words = fc.constantFrom(
  ...'bash|write_file|command|<tool_call>|</tool_call>|<function=|>|[TOOL_CALLS]|{|}|[|]|"|:|\n|```|name|arguments|`|is written as|.| '.split(
    "|",
  ),
);
const texts = fc
  .array(fc.oneof(words, fc.lorem(), fc.json()), { maxLength: 14 })
  .map((parts) => parts.join(""));

it("an answer that ends in prose is untouched, whatever it quotes (5,000 answers)", () => {
  fc.assert(
    fc.property(texts, fc.constantFrom(...Object.values(FORMS)), fc.lorem(), (before, form, after) => {
      expect(writtenCalls(`${before}\n${form}\nThat is what it writes: ${after}.`, tools)).toBeUndefined();
    }),
    { seed: 35, numRuns: 5_000 },
  );
});

it("no text takes long or throws (5,000 texts)", () => {
  fc.assert(
    fc.property(texts, (text) => void writtenCalls(text, tools)),
    { seed: 35, numRuns: 5_000 },
  );
  const long = ["<tool_call>", "{", "[", "<invoke name='bash'>", "```\n", "<bash>", "x"].map((part) =>
    part.repeat(20_000),
  );
  const startedAt = performance.now();
  for (const text of long) expect(writtenCalls(text, tools)).toBeUndefined();
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});
