/** What the workflow learns about a requested call. */
import type { CallFacts } from "../contract/activities.ts";
import { cutChars } from "../text/cut.ts";
import type { ToolCallPart } from "../contract/message.ts";
import { askUser } from "../tools/ask-user.ts";
import { DELEGATE, delegateInput } from "../tools/delegate.ts";
import { exitPlan } from "../tools/exit-plan.ts";
import { verdictOf } from "../tools/permissions/permissions.ts";
import { findTool } from "../tools/index.ts";
import { aboutCall } from "../tools/invoke.ts";
import { sessionTools } from "../tools/session-tools.ts";
import type { StepContext } from "./step-context.ts";

/** The most characters of a tool's name in the history; providers take 64. */
const MAX_NAME_CHARS = 40;

export function callFacts(step: StepContext, call: ToolCallPart): CallFacts {
  return {
    name: cutChars(call.toolName, MAX_NAME_CHARS),
    about: step.deps.idsOnly === true ? "" : aboutOf(step, call),
    ...(isForPerson(step, call) ? { by: "person" } : {}),
    ...(isDelegated(step, call) ? { by: "delegate" } : {}),
    ...(needsApproval(step, call) ? { needsApproval: true } : {}),
    ...(runsAlone(step, call) ? { alone: true } : {}),
  };
}

/** A call with invalid input goes to the tool, which reports what is wrong with it; no one is asked. */
function isForPerson({ deps, session }: StepContext, { toolName, input }: ToolCallPart): boolean {
  const tool = sessionTools(deps.tools, session).get(toolName);
  return (tool === askUser || tool === exitPlan) && tool.input.safeParse(input).success;
}

/** A call whose input is invalid or that a rule forbids goes to the tool runner, which reports what is wrong with it. */
function isDelegated({ deps, session }: StepContext, call: ToolCallPart): boolean {
  const has = sessionTools(deps.tools, session).has(DELEGATE);
  if (verdictOf(session.config.permissions ?? [], call).action === "deny") return false;
  return has && call.toolName === DELEGATE && delegateInput.safeParse(call.input).success;
}

/** The servers of calls to MCP tools, for the ledger; undefined if there are none. */
export function serversOf({ deps, session }: StepContext, calls: readonly ToolCallPart[]) {
  const tools = sessionTools(deps.tools, session);
  const found = calls.flatMap(({ toolName }) => {
    const tool = tools.get(toolName);
    return tool?.server === undefined ? [] : [[toolName, tool.server] as const];
  });
  return found.length === 0 ? undefined : new Map(found);
}

/** No one is asked about an invalid call: its result says what is wrong with it. */
function needsApproval({ deps, session }: StepContext, call: ToolCallPart): boolean {
  const { permissions = [] } = session.config;
  if (permissions.length === 0 || verdictOf(permissions, call).action !== "ask") return false;
  return (
    findTool(sessionTools(deps.tools, session), call.toolName)?.input.safeParse(call.input).success === true
  );
}

function runsAlone({ deps, session }: StepContext, { toolName }: ToolCallPart): boolean {
  const { parallelCalls = true } = session.config;
  if (parallelCalls !== "read-only") return !parallelCalls;
  return findTool(sessionTools(deps.tools, session), toolName)?.readOnly !== true;
}

/** At most 60 characters that say what a call is about, masked. */
export function aboutOf({ deps, session }: StepContext, call: ToolCallPart): string {
  const tools = sessionTools(deps.tools, session);
  return deps.sanitizer.clean(aboutCall(tools, { name: call.toolName, input: call.input }));
}
