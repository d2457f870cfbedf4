/** What of an answer is stored: its calls read as they are meant, every text masked, and the ids of calls unique in the session. */
import { cutChars } from "../text/cut.ts";
import type { AssistantPart } from "../contract/message.ts";
import type { ModelAnswer } from "../model/model.ts";
import { cleanDeep } from "../redaction/clean-deep.ts";
import { callsOf } from "../store/transcript.ts";
import { readCall } from "../tools/reading/read-call.ts";
import { sessionTools } from "../tools/session-tools.ts";
import type { StepContext } from "./step-context.ts";

/** The most characters of a tool's name as the model wrote it; providers take 64. */
const MAX_NAME_CHARS = 200;

export const storedContent = (step: StepContext, answer: ModelAnswer): AssistantPart[] =>
  uniqueCallIds(step, cleanContent(step, answer));

function cleanContent({ deps, session }: StepContext, answer: ModelAnswer): AssistantPart[] {
  const tools = sessionTools(deps.tools, session);
  const isCut = answer.finish === "length" || answer.finish === "content-filter";
  const { clean } = deps.sanitizer;
  return answer.content.map((part) => {
    if (part.type !== "tool-call") return { ...part, text: clean(part.text) };
    const read = readCall(tools, part, isCut);
    // What could not be read is quoted: masked before it is cut.
    const { toolName, input, remark, unread } =
      read.unread === undefined
        ? read
        : readCall(tools, { ...part, input: cleanDeep(part.input, clean) }, isCut);
    return {
      ...part,
      // A tool's name is text of the model as well, and may contain anything.
      toolName: cutChars(clean(toolName), MAX_NAME_CHARS),
      toolCallId: clean(part.toolCallId),
      input: cleanDeep(input, clean),
      ...(remark === undefined ? {} : { remark: clean(remark) }),
      ...(unread === undefined ? {} : { unread: clean(unread) }),
    };
  });
}

// Providers have been seen to reuse an id, within an answer and across a session. Calls that left the view cannot collide.
function uniqueCallIds({ rows, input }: StepContext, content: AssistantPart[]): AssistantPart[] {
  const taken = new Set(
    rows
      .flatMap((row) => (row.role === "assistant" ? callsOf(row.content) : []))
      .map((call) => call.toolCallId),
  );
  let index = -1;
  return content.map((part) => {
    if (part.type !== "tool-call") return part;
    index += 1;
    const isFree = part.toolCallId !== "" && !taken.has(part.toolCallId);
    const toolCallId = isFree ? part.toolCallId : `${part.toolCallId}_s${input.step}c${index}`;
    taken.add(toolCallId);
    return { ...part, toolCallId };
  });
}
