/** Texts for calls without a result. */
import { failure } from "../tools/failure.ts";
import { oneLine } from "../tools/paths.ts";
import type { ToolResult } from "../tools/tool.ts";
import type { McpCall } from "./mcp.ts";
import { isPassing, isRefusal, isTimeout, isUnreadable, reasonOf } from "./mcp-failure.ts";

/** A call whose outcome is unknown. */
export function unknownEnd({ server, entry, input }: McpCall, why: string): ToolResult {
  return {
    unknown: true,
    text: [
      `It is not known how this call ended: ${why}. It may have happened.`,
      `Sent to the server ${server.name}: ${entry.name} ${oneLine(JSON.stringify(input), 500)}`,
      "It was not sent again. Look at what it has done before you repeat it.",
    ].join("\n"),
  };
}

/** @param sent whether the server may have received the call, and whether a person stopped it */
export function failedCall(
  call: McpCall,
  error: unknown,
  sent: { readonly isSent: boolean; readonly isStopped: boolean },
): ToolResult {
  const { name, settings } = call.server;
  if (sent.isStopped) {
    const text = sent.isSent
      ? `The user stopped this call. The server ${name} was informed; what it did until then may have taken effect.`
      : "[interrupted before it began]";
    return { text, interrupted: true };
  }
  const seconds = (ms: number) => `${ms / 1_000} s`;
  const reason = isTimeout(error)
    ? `${name} did not respond for ${seconds(settings.timeout)}, or took longer than ${seconds(settings.maxTimeout)} (timeout and maxTimeout of this server)`
    : `${name}: ${reasonOf(error)}`;
  const again = isPassing(error);
  if (!sent.isSent || isRefusal(error))
    return failure(`The call failed. ${reason}.${again ? " The same call may succeed later." : ""}`);
  if (isUnreadable(error))
    return failure(
      `${name} answered this call, and its answer cannot be read: ${reasonOf(error)}. The call was made: look at what it has done before you repeat it.`,
    );
  if (call.isRepeatable) return failure(`The call failed. ${reason}.${again ? " It can be repeated." : ""}`);
  return unknownEnd(call, reason);
}

/** Adds a notice that the server's program is a new one. */
export function withNotice(name: string, result: ToolResult): ToolResult {
  if (result.asks !== undefined) return result;
  const notice = `[The server ${name} was restarted for this call: what was in the memory of its earlier program is gone.]`;
  return { ...result, text: `${notice}\n${result.text}` };
}
