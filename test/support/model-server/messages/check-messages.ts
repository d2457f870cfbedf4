/** What Anthropic refuses. Pure. Source: its error texts, quoted in public issues (claude-code, inspect_ai, opencode). */
import { isOurEncryption } from "../encrypted-reasoning.ts";
import { isObject, type Json } from "../fields.ts";
import { invalid } from "../refusal.ts";
import { schemaProblem } from "../schema-problem.ts";
import { WIRE_FIELDS } from "../wire-fields.ts";
import type { ServedModel, UncountedRequest as Request } from "../wire.ts";
import { blocksOf } from "./parse-messages.ts";

const { parameters: PARAMETERS, blocks: BLOCK_FIELDS } = WIRE_FIELDS.messages;
const MAX_CACHE_MARKS = 4;
const ID = /^[a-zA-Z0-9_-]+$/;
const PROPERTY_NAME = /^[a-zA-Z0-9_.-]{1,64}$/;
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/;

/** @throws Refusal */
export function checkMessages(request: Request, model: ServedModel): void {
  const { raw } = request;
  const unknown = Object.keys(raw).find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined) throw invalid(`${unknown}: Extra inputs are not permitted`);
  checkLimits(request, model);
  checkTools(request);
  const marks = countMarks(raw);
  if (marks > MAX_CACHE_MARKS) {
    throw invalid(
      `A maximum of ${MAX_CACHE_MARKS} blocks with cache_control may be provided. Found ${marks}.`,
    );
  }
  checkOrder(raw);
}

function checkLimits({ raw, maxOutputTokens }: Request, model: ServedModel): void {
  if (maxOutputTokens === undefined) throw invalid("max_tokens: Field required");
  if (maxOutputTokens < 1) throw invalid("max_tokens: Input should be greater than or equal to 1");
  if (model.maxOutput !== undefined && maxOutputTokens > model.maxOutput) {
    throw invalid(
      `max_tokens: ${maxOutputTokens} > ${model.maxOutput}, which is the maximum allowed number of output tokens for ${String(raw["model"])}`,
    );
  }
  const { thinking } = raw;
  if (!isThinking(raw)) return;
  const budget = isObject(thinking) ? thinking["budget_tokens"] : undefined;
  if (typeof budget === "number" && budget >= maxOutputTokens)
    throw invalid("`max_tokens` must be greater than `thinking.budget_tokens`.");
  if (typeof budget === "number" && budget < 1_024)
    throw invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024");
  if (raw["temperature"] !== undefined && raw["temperature"] !== 1)
    throw invalid("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.");
}

/** Whether the request asks the model to think. */
export function isThinking(raw: Json): boolean {
  const { thinking } = raw;
  return isObject(thinking) && (thinking["type"] === "enabled" || thinking["type"] === "adaptive");
}

function checkTools({ raw, tools }: Request): void {
  const seen = new Set<string>();
  tools.forEach((tool, index) => {
    if (!TOOL_NAME.test(tool.name))
      throw invalid(`tools.${index}.custom.name: String should match pattern '${TOOL_NAME.source}'`);
    if (seen.has(tool.name)) throw invalid("tools: Tool names must be unique.");
    seen.add(tool.name);
    if (!isObject(tool.schema)) throw invalid(`tools.${index}.custom.input_schema: Field required`);
    if (tool.schema["type"] !== "object")
      throw invalid(`tools.${index}.custom.input_schema.type: Input should be 'object'`);
    checkInputSchema(tool.schema, `tools.${index}.custom.input_schema`);
  });
  const choice = raw["tool_choice"];
  if (choice === undefined) return;
  const type = isObject(choice) ? choice["type"] : undefined;
  if (type !== "auto" && type !== "any" && type !== "tool" && type !== "none")
    throw invalid(
      "tool_choice: Input tag does not match any of the expected tags: 'auto', 'any', 'none', 'tool'",
    );
  if (tools.length === 0) throw invalid("tool_choice may only be specified while providing tools.");
}

function checkInputSchema(schema: Json, at: string): void {
  if (["oneOf", "allOf", "anyOf"].some((keyword) => schema[keyword] !== undefined))
    throw invalid(`${at}: input_schema does not support oneOf, allOf, or anyOf at the top level`);
  const { properties = {} } = schema;
  if (isObject(properties) && !Object.keys(properties).every((name) => PROPERTY_NAME.test(name)))
    throw invalid(`${at}.properties: Property keys should match pattern '${PROPERTY_NAME.source}'`);
  if (schemaProblem(schema, false) !== undefined)
    throw invalid(
      `${at}: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12).`,
    );
}

function countMarks(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, entry) => sum + countMarks(entry), 0);
  if (!isObject(value)) return 0;
  // A call's input and a tool's schema are the client's own.
  return Object.entries(value).reduce((sum, [name, field]) => {
    if (name === "input" || name === "input_schema") return sum;
    return sum + (name === "cache_control" ? 1 : countMarks(field));
  }, 0);
}

function checkOrder(raw: Json): void {
  const messages = merged(raw["messages"]);
  if (messages.length === 0) throw invalid("messages: at least one message is required");
  if (messages[0]?.role !== "user") throw invalid('messages: first message must use the "user" role');
  if (messages.at(-1)?.role !== "user") {
    throw invalid(
      "This model does not support assistant message prefill. The conversation must end with a user message.",
    );
  }
  const seen = new Set<string>();
  messages.forEach(({ role, blocks, path }, index) => {
    if (blocks.length === 0)
      throw invalid(
        `${path}: all messages must have non-empty content except for the optional final assistant message`,
      );
    for (const [at, block] of blocks) checkBlock(block, at, role);
    const next = messages[index + 1];
    if (role === "assistant") checkAnswers(blocks, next?.blocks ?? [], path, seen);
    else checkResults(blocks, messages[index - 1]?.blocks ?? [], path);
    if (role === "assistant" && isThinkingBlock(blocks.at(-1)?.[1]))
      throw invalid(`${blocks.at(-1)?.[0]}: The final block in an assistant message cannot be \`thinking\`.`);
  });
  checkThinkingFirst(raw, messages);
}

interface Merged {
  readonly role: "user" | "assistant";
  readonly path: string;
  readonly blocks: [string, Json][];
}

/** Messages of one role in a row count as one. Source: the reference, "messages". */
function merged(messages: unknown): Merged[] {
  const list: Merged[] = [];
  if (!Array.isArray(messages)) return list;
  messages.forEach((message: Json, index) => {
    const role = message["role"] === "assistant" ? "assistant" : "user";
    const blocks = blocksOf(message["content"], `messages.${index}.content`);
    const last = list.at(-1);
    if (last?.role === role) last.blocks.push(...blocks);
    else list.push({ role, path: `messages.${index}`, blocks });
  });
  return list;
}

function checkBlock(block: Json, path: string, role: Merged["role"]): void {
  const type = String(block["type"]);
  const unknown = Object.keys(block).find(
    (name) => name !== "type" && !(BLOCK_FIELDS[type] ?? []).includes(name),
  );
  if (unknown !== undefined) throw invalid(`${path}.${type}.${unknown}: Extra inputs are not permitted`);
  const isUsers = type === "tool_result" || type === "image" || type === "document";
  const isAssistants = type === "tool_use" || isThinkingBlock(block);
  if ((role === "user" && isAssistants) || (role === "assistant" && isUsers))
    throw invalid(`${path}: \`${type}\` blocks can not be in \`${role}\` messages`);
  if (type === "text" && block["text"] === "")
    throw invalid("messages: text content blocks must be non-empty");
  if (type === "text" && String(block["text"]).trim() === "")
    throw invalid("messages: text content blocks must contain non-whitespace text");
  if (type === "thinking" && !isOurEncryption(String(block["thinking"]), String(block["signature"])))
    throw invalid(`${path}: Invalid \`signature\` in \`thinking\` block`);
  if (type === "redacted_thinking" && !isOurEncryption("redacted", String(block["data"])))
    throw invalid(`${path}: Invalid \`data\` in \`redacted_thinking\` block`);
  if (type === "tool_use" && !ID.test(String(block["id"])))
    throw invalid(`${path}.tool_use.id: String should match pattern '${ID.source}'`);
}

function checkAnswers(
  blocks: Merged["blocks"],
  answers: Merged["blocks"],
  path: string,
  seen: Set<string>,
): void {
  const uses = blocks.flatMap(([at, block]) =>
    block["type"] === "tool_use" ? [[at, block["id"]] as const] : [],
  );
  // Results come first in the message that answers; anything before one hides it.
  const end = answers.findIndex(([, block]) => block["type"] !== "tool_result");
  const first = end === -1 ? answers : answers.slice(0, end);
  const answered = first.map(([, block]) => block["tool_use_id"]);
  for (const [at, id] of uses) {
    if (seen.has(String(id))) throw invalid(`${at}: \`tool_use\` ids must be unique`);
    seen.add(String(id));
  }
  const open = uses.map(([, id]) => id).filter((id) => !answered.includes(id));
  if (open.length === 0) return;
  throw invalid(
    `${path}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  );
}

function checkResults(blocks: Merged["blocks"], before: Merged["blocks"], path: string): void {
  const results = blocks.filter(([, block]) => block["type"] === "tool_result");
  const ids = results.map(([, block]) => String(block["tool_use_id"]));
  for (const [index, id] of ids.entries()) {
    if (!before.some(([, block]) => block["type"] === "tool_use" && block["id"] === id)) {
      throw invalid(
        `${results[index]?.[0]}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      );
    }
    if (ids.indexOf(id) !== index) {
      throw invalid(
        `${path}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`,
      );
    }
  }
}

/** Only without adaptive thinking, and only if calls of the last turn are being answered. */
function checkThinkingFirst(raw: Json, messages: readonly Merged[]): void {
  const { thinking } = raw;
  if (!isObject(thinking) || thinking["type"] !== "enabled") return;
  const last = messages.at(-2);
  const first = last?.blocks[0];
  if (first === undefined || !last?.blocks.some(([, block]) => block["type"] === "tool_use")) return;
  if (isThinkingBlock(first[1])) return;
  throw invalid(
    `${first[0]}.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(first[1]["type"])}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`,
  );
}

function isThinkingBlock(block: Json | undefined): boolean {
  return block?.["type"] === "thinking" || block?.["type"] === "redacted_thinking";
}
