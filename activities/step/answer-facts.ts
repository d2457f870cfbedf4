/** What is read from an answer before it is stored: its calls as they are meant, what it lacks, and what is reported of it once a session. */
import { cutChars } from "../text/cut.ts";
import { type AssistantPart, type ToolCallPart, answerText } from "../contract/message.ts";
import type { ModelAnswer, RefusedPart } from "../model/model.ts";
import { cleanDeep } from "../text/clean.ts";
import { callsOf } from "../store/transcript.ts";
import { readCall } from "../tools/reading/read-call.ts";
import { sessionTools } from "../tools/session-tools.ts";
import type { StepContext } from "./step-context.ts";
import type { CallFacts } from "../contract/activities.ts";
import { askUser } from "../tools/ask-user.ts";
import { DELEGATE, delegateInput } from "../tools/delegate.ts";
import { exitPlan } from "../tools/exit-plan.ts";
import { judgeCall } from "../tools/permissions/permissions.ts";
import { findTool } from "../tools/index.ts";
import { aboutCall } from "../tools/invoke.ts";
import { wait } from "../tools/wait.ts";
import { writeStdin } from "../tools/write-stdin.ts";
import { buildPrefix } from "../context/request.ts";
import { checkAnswer } from "../config/output-schema.ts";
import { writtenCalls } from "../model/written-calls.ts";
import { log } from "@temporalio/activity";
import { wasReported, reportedParts, reportedTools } from "../store/reported.ts";
import { recentCalls } from "../store/reading.ts";
import { areDoubtful, isSuspicious, JUDGED_CALLS } from "../transcript/size.ts";
import type { NewEvent } from "../store/event.ts";

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

/** Of a call's id in UTF-8: an index has it. Source: Postgres, 2,704 bytes for a row of a b-tree, which also has the session's id. */
const MAX_CALL_ID_BYTES = 2_000;

// Providers have been seen to reuse an id, within an answer and across a session. Calls that left the view cannot collide.
function uniqueCallIds({ rows, input }: StepContext, content: AssistantPart[]): AssistantPart[] {
  const usedIds = new Set(
    rows
      .flatMap((row) => (row.role === "assistant" ? callsOf(row.content) : []))
      .map((call) => call.toolCallId),
  );
  let index = -1;
  return content.map((part) => {
    if (part.type !== "tool-call") return part;
    index += 1;
    const id = Buffer.byteLength(part.toolCallId) > MAX_CALL_ID_BYTES ? "" : part.toolCallId;
    const isFree = id !== "" && !usedIds.has(id);
    const toolCallId = isFree ? id : `${id}_s${input.step}c${index}`;
    usedIds.add(toolCallId);
    return { ...part, toolCallId };
  });
}

/** The most characters of a tool's name in the history; providers take 64. */
const MAX_FACT_NAME_CHARS = 40;

export function callFacts(step: StepContext, call: ToolCallPart): CallFacts {
  return {
    name: cutChars(call.toolName, MAX_FACT_NAME_CHARS),
    about: step.deps.idsOnly === true ? "" : describeCall(step, call),
    by: settledBy(step, call),
    needsApproval: needsApproval(step, call) ? true : undefined,
    alone: runsAlone(step, call) ? true : undefined,
  };
}

/** Who settles the call, if no tool does. */
function settledBy(step: StepContext, call: ToolCallPart): CallFacts["by"] {
  if (isDelegated(step, call)) return "delegate";
  if (isWait(step, call)) return "wait";
  return isForPerson(step, call) ? "person" : undefined;
}

/** A call with invalid input goes to the tool, which reports what is wrong with it; no one is asked. */
function isForPerson({ deps, session }: StepContext, { toolName, input }: ToolCallPart): boolean {
  const tool = sessionTools(deps.tools, session).get(toolName);
  return (tool === askUser || tool === exitPlan) && tool.input.safeParse(input).success;
}

/** One that is invalid or forbidden goes to the tool runner, which reports that. */
function isWait({ deps, session }: StepContext, call: ToolCallPart): boolean {
  const isOffered = sessionTools(deps.tools, session).get(call.toolName) === wait;
  if (!isOffered || judgeCall(session.config.permissions, call).action === "deny") return false;
  return wait.input.safeParse(call.input).success;
}

/** A call whose input is invalid or that a rule forbids goes to the tool runner, which reports what is wrong with it. */
function isDelegated({ deps, session }: StepContext, call: ToolCallPart): boolean {
  const has = sessionTools(deps.tools, session).has(DELEGATE);
  if (judgeCall(session.config.permissions, call).action === "deny") return false;
  return has && call.toolName === DELEGATE && delegateInput.safeParse(call.input).success;
}

/** The servers of calls to MCP tools, for the ledger; undefined if there are none. */
export function serversOf({ deps, session }: StepContext, calls: readonly ToolCallPart[]) {
  const tools = sessionTools(deps.tools, session);
  const servers = calls.flatMap(({ toolName }) => {
    const tool = tools.get(toolName);
    return tool?.server === undefined ? [] : [[toolName, tool.server] as const];
  });
  return servers.length === 0 ? undefined : new Map(servers);
}

/** No one is asked about an invalid call: its result says what is wrong with it. */
function needsApproval({ deps, session }: StepContext, call: ToolCallPart): boolean {
  const { permissions } = session.config;
  if (permissions.length === 0 || judgeCall(permissions, call).action !== "ask") return false;
  return (
    findTool(sessionTools(deps.tools, session), call.toolName)?.input.safeParse(call.input).success === true
  );
}

function runsAlone({ deps, session }: StepContext, { toolName }: ToolCallPart): boolean {
  // The step's other calls run first: see the workflow's calls.ts.
  if (toolName === wait.name) return true;
  // What is typed in one step is typed in the order of its calls.
  if (toolName === writeStdin.name) return true;
  const { parallelCalls = true } = session.config;
  if (parallelCalls !== "read-only") return !parallelCalls;
  return findTool(sessionTools(deps.tools, session), toolName)?.readOnly !== true;
}

/** At most 60 characters that say what a call is about, masked. */
export function describeCall({ deps, session }: StepContext, call: ToolCallPart): string {
  const tools = sessionTools(deps.tools, session);
  return deps.sanitizer.clean(aboutCall(tools, { name: call.toolName, input: call.input }));
}

/** Whether a stored answer without a call is what ends the task: the words of a model, and what the session's schema asks for. */
export interface Lacks {
  /** What is wrong with an answer that is not JSON matching the session's schema. */
  readonly mismatch?: string;
  /** The tool of which the answer is, or ends in, a call that was not made. */
  readonly wroteCall?: string;
}

/** @returns what keeps an answer from ending the task; nothing if it ends it, or if it cannot end it anyway */
export async function judgeAnswer(
  { deps, session, input }: StepContext,
  content: readonly AssistantPart[],
  finish: string,
): Promise<Lacks> {
  const { outputSchema } = session.config;
  // At a limit the model reports its progress in plain text.
  if (finish !== "stop" || input.wrapUp === true || callsOf(content).length > 0) return {};
  const text = answerText(content);
  const checked = outputSchema === undefined ? undefined : await checkAnswer(outputSchema, text);
  if (checked?.ok === true) return {};
  const [call] = writtenCalls(text, buildPrefix(session, deps.tools).tools)?.calls ?? [];
  return {
    mismatch: checked === undefined ? undefined : deps.sanitizer.clean(checked.why),
    wroteCall: call?.toolName,
  };
}

/** Usage figures that cannot be true: they are recorded but not used, and people are informed once a session. */
export interface Doubt {
  /** The usage is listed but not used in calculations. */
  readonly isDoubtful: boolean;
  /** No one was informed before. */
  readonly isNews: boolean;
}

const NONE: Doubt = { isDoubtful: false, isNews: false };

/** Reads the earlier usage rows only if this answer's usage looks doubtful. */
export async function judgeUsage(step: StepContext, { usage }: ModelAnswer): Promise<Doubt> {
  const { deps, session, size, input } = step;
  if (usage === undefined) return NONE;
  const call = { estimated: size.next.tokens, actual: usage.input };
  if (!isSuspicious(call, size.pureTokens)) return NONE;
  const { model } = session.config;
  const before = await recentCalls(deps.store.db, session.id, JUDGED_CALLS - 1, model);
  if (!areDoubtful([call, ...before])) return NONE;
  if (await wasReported(deps.store.db, session.id, "usageDoubtful"))
    return { isDoubtful: true, isNews: false };
  log.warn(
    "the provider's token counts contradict ours; the estimate is used. A count that stays low while the session grows means that the server cuts requests to its own window: longhaul doctor shows it",
    { model, step: input.step, billedTokens: usage.input, countedTokens: size.pureTokens },
  );
  return { isDoubtful: true, isNews: true };
}

/** Reports, once a session, what a provider refuses and the session now leaves out. */
interface NewsContext {
  readonly deps: { readonly store: Pick<StepContext["deps"]["store"], "db"> };
  readonly session: Pick<StepContext["session"], "id">;
  readonly input: Pick<StepContext["input"], "step">;
}

export async function refusalNews(
  { deps, session }: StepContext,
  { summaryRefused, refusedTools = [] }: ModelAnswer,
) {
  const { db } = deps.store;
  const isNews = summaryRefused === true && !(await wasReported(db, session.id, "summaryRefused"));
  const reported = refusedTools.length === 0 ? [] : await reportedTools(db, session.id);
  const tools = refusedTools.filter((name) => !reported.includes(name));
  return {
    summaryRefused: isNews ? summaryRefused : undefined,
    refusedTools: tools.length === 0 ? undefined : tools,
  };
}

/** A part that was refused just now, or to another session lately: on its way through a fork, or its answer was empty. */
export async function refusedParts(
  { deps, session, input }: NewsContext,
  { refusedParts: parts = [] }: Pick<ModelAnswer, "refusedParts">,
): Promise<NewEvent[]> {
  const reported = parts.every(({ isNew }) => isNew) ? [] : await reportedParts(deps.store.db, session.id);
  return parts.flatMap((part) => {
    const message = describeRefused(part);
    if (!part.isNew && reported.includes(message)) return [];
    return [
      {
        type: "llm:unsupported-input",
        step: input.step,
        data: { mediaType: part.mediaType, message },
      },
    ];
  });
}

const describeRefused = ({ mediaType, filename = "a file", why }: RefusedPart): string => {
  if (mediaType === "field") return `The model is asked without \`${filename}\`: ${why}`;
  return mediaType === "thoughts"
    ? `The model continues without its earlier thoughts: ${why}`
    : `The model is not shown ${filename} (${mediaType}), and has words in its place: ${why}`;
};

/** Whether the request had less than was estimated: its usage then says nothing about how the model counts tokens. */
export const wasAskedForLess = ({ refusedTools, refusedParts: parts }: ModelAnswer): boolean =>
  refusedTools !== undefined || parts?.some(({ mediaType }) => mediaType !== "field") === true;
