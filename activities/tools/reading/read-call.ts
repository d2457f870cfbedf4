/** The one place in which what a model wrote becomes a call of a tool: its name, its arguments, its input. Pure. */
import type { ToolCallPart } from "../../contract/message.ts";
import { findTool, type ToolRegistry } from "../index.ts";
import { readArguments } from "./read-arguments.ts";
import { readInput } from "./read-input.ts";
import { readName } from "./read-name.ts";

export type WrittenCall = Pick<ToolCallPart, "toolName" | "input" | "remark" | "unread">;

/**
 * What a call means, as it is stored, shown, judged by rules and run. Reading it again changes nothing.
 * @param isCut the provider ended the answer before the model did
 */
export function readCall(registry: ToolRegistry, call: WrittenCall, isCut = false): WrittenCall {
  const toolName = readName(registry, call.toolName);
  const tool = findTool(registry, toolName);
  if (tool === undefined || call.unread !== undefined) return { ...call, toolName };
  const read = typeof call.input === "string" ? readArguments(call.input, isCut) : { input: call.input };
  if ("reason" in read) return { ...call, toolName, unread: read.reason };
  if (tool.server !== undefined || tool.isOwn === true) return { ...call, toolName, input: read.input };
  const { input, remarks, refusals } = readInput(tool, read.input);
  if (refusals.length > 0) return { ...call, toolName, input: read.input, unread: refusals.join(" ") };
  return {
    ...call,
    toolName,
    input,
    ...(remarks.length === 0 ? {} : { remark: remarks.join("; ") }),
  };
}
