/** Order of tool calls and results, as the real service requires it. Pure. */
import { invalid, invalidValue, tooLong } from "./refusal.ts";
import type { WireItem } from "./wire.ts";

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MAX_CALL_ID_CHARS = 64;

/**
 * Every call has exactly one result, right after the calls of its turn and before anything else.
 * @throws Refusal
 */
export function checkPairs(api: "responses" | "chat", items: readonly WireItem[]): void {
  const seen = new Set<string>();
  const open = new Set<string>();
  let answering = false;
  items.forEach((item, index) => {
    if (item.type === "result") {
      if (!open.delete(item.callId)) refuseResult(api, item.callId, index);
      answering = true;
      return;
    }
    // Text and reasoning of the same turn may come between calls; anything after the first result begins a new turn.
    const sameTurn =
      item.type === "call" ||
      item.type === "reasoning" ||
      (item.type === "message" && item.role === "assistant");
    if (answering || !sameTurn) refuseOpen(api, open);
    answering = false;
    if (item.type !== "call") return;
    checkName(item.name, api === "responses" ? `input[${index}].name` : "messages.tool_calls.function.name");
    if (item.callId.length > MAX_CALL_ID_CHARS)
      throw tooLong("call_id", MAX_CALL_ID_CHARS, item.callId.length);
    if (seen.has(item.callId))
      throw invalid(
        `Duplicate item found with id ${item.callId}. Remove duplicate items from your input and try again.`,
        "duplicate_item",
        "input",
      );
    seen.add(item.callId);
    open.add(item.callId);
  });
  refuseOpen(api, open);
}

function refuseOpen(api: "responses" | "chat", open: ReadonlySet<string>): void {
  const [first] = open;
  if (first === undefined) return;
  throw api === "responses"
    ? invalid(`No tool output found for function call ${first}.`, null, "input")
    : invalid(
        `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(", ")}`,
        null,
        "messages",
      );
}

function refuseResult(api: "responses" | "chat", callId: string, index: number): never {
  throw api === "responses"
    ? invalid(`No tool call found for function call output with call_id ${callId}.`, null, "input")
    : invalid(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        null,
        `messages.[${index}].role`,
      );
}

/** @throws Refusal for an invalid tool name */
export function checkName(name: string, path: string): void {
  if (NAME.test(name)) return;
  if (name.length > 64) throw tooLong(path, 64, name.length);
  throw invalidValue(
    `Invalid '${path}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
    path,
  );
}
