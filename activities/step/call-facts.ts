/** What the workflow is told of a requested call. */
import type { CallFacts } from "../contract/activities.ts";
import { cutChars } from "../contract/cut-text.ts";
import type { ToolCallPart } from "../contract/message.ts";
import { askUser } from "../tools/ask-user.ts";
import { aboutCall } from "../tools/invoke.ts";
import { sessionTools } from "../tools/session-tools.ts";
import type { StepContext } from "./step-context.ts";

/** Of a tool's name in the history; providers take 64. */
const MAX_NAME_CHARS = 40;

export function callFacts(step: StepContext, call: ToolCallPart): CallFacts {
  return {
    name: cutChars(call.toolName, MAX_NAME_CHARS),
    about: aboutOf(step, call),
    ...(isForPerson(step, call) ? { by: "person" } : {}),
  };
}

/** A call that asks nothing right is a tool's: it ends with what is wrong with it, and nobody is asked. */
function isForPerson({ deps, session }: StepContext, { toolName, input }: ToolCallPart): boolean {
  const tool = sessionTools(deps.tools, session).get(toolName);
  return tool === askUser && tool.input.safeParse(input).success;
}

/** At most 60 characters that say what a call is about, masked. */
export function aboutOf({ deps, session }: StepContext, call: ToolCallPart): string {
  const tools = sessionTools(deps.tools, session);
  return deps.sanitizer.clean(aboutCall(tools, { name: call.toolName, input: call.input }));
}
