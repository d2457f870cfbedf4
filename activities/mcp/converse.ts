/** Brings a call from its stored state to its result: sends it, continues it with answers, or follows its task. */
import { isInputRequiredResult, type Client } from "@modelcontextprotocol/client";
import { LeaveRunning, type ToolContext, type ToolResult } from "../tools/tool.ts";
import { oneLine } from "../tools/paths.ts";
import { answersTo, questionsFor } from "./elicitation.ts";
import { failedCall, unknownEnd } from "./failures.ts";
import type { AskedQuestions, CallState, McpCall } from "./mcp.ts";
import { callTool, type Continued } from "./protocol-client.ts";
import { toolResult } from "./results.ts";
import { taskOf, cancelTask, followTask, updateTask, type RequestOnce } from "./tasks.ts";

/** The most rounds of one call. Source: the protocol's own library. */
const MAX_ROUNDS = 10;
/** The most that a server may ask for in one round, with its state. Chosen: it is stored with the call. */
const MAX_ASKED_CHARS = 256_000;

/** How to reach a server. */
export interface Line {
  /** What the ledger stores about the call's receiver; undefined if the call may be sent again anyway. */
  readonly mark: string | undefined;
  /**
   * Runs `body` with a client for one exchange. The same name means the same exchange, whose answer may have arrived already.
   * @throws what `body` throws, and what connecting does
   */
  exchange<T>(name: string, body: (client: Client) => Promise<T>): Promise<T>;
  /**
   * Runs `body` for one of the requests about a task. Each may have another connection: a task outlives the one that began it.
   * Absent if all need the same.
   */
  readonly request?: RequestOnce;
  /** Whether an error is passed on unchanged, and how it is reported otherwise. */
  readonly isLost?: (error: unknown) => boolean;
  readonly isUnsent: (error: unknown) => boolean;
}

/** @throws LeaveRunning; errors for which the line's `isLost` is true */
export async function converse(call: McpCall, context: ToolContext, line: Line): Promise<ToolResult> {
  const { state, task } = call;
  const nextId = (index: number) => call.questionId(state.questions + index);
  const answered = state.asked && answersTo(state.asked, call.answers, nextId);
  if (answered?.kind === "open" && state.asked) return asking(call, state.asked.questions);
  if (answered?.kind === "unfit" && state.asked)
    return askAgain(call, { ...state.asked, questions: reworded(state.asked, answered.questions) });
  const ready = answered?.kind === "ready" ? answered : undefined;
  const result =
    task === undefined
      ? await send(call, context, line, ready?.responses)
      : await follow(call, context, line, { task, responses: ready?.responses });
  const notes = ready?.notes ?? [];
  if (notes.length === 0) return result;
  if (result.asks !== undefined)
    return {
      text: `${notes.join("\n")}\nThe server then asked again; that question was not passed on to anyone.`,
      isError: true,
    };
  return { ...result, text: [...notes, result.text].join("\n") };
}

/** The questions, of which those that are asked again replace the earlier ones. */
const reworded = ({ questions }: AskedQuestions, again: AskedQuestions["questions"]) =>
  questions.map(
    (question) =>
      again.find(({ request, field }) => request === question.request && field === question.field) ??
      question,
  );

function asking({ server, answers }: McpCall, questions: AskedQuestions["questions"]): ToolResult {
  const open = questions.filter(({ id }) => (answers.get(id)?.status ?? "open") === "open");
  return { text: "", asks: { server: server.name, questions: open } };
}

async function askAgain(call: McpCall, serverAsks: AskedQuestions): Promise<ToolResult> {
  const { state } = call;
  const again = serverAsks.questions.filter(({ id }) => !call.answers.has(id));
  await call.keepState({ ...state, asked: serverAsks, questions: state.questions + again.length });
  return asking(call, serverAsks.questions);
}

/** Stores the server's questions; the activity that gets the answers sends them back. */
async function ask(
  call: McpCall,
  { round, answered }: Pick<CallState, "round" | "answered">,
  wants: Pick<AskedQuestions, "requests" | "requestState">,
): Promise<ToolResult> {
  const { server, state } = call;
  const fail = (why: string) => ({
    text: `The call was not continued. ${server.name}: ${why}.`,
    isError: true,
  });
  if (round > MAX_ROUNDS) return fail(`it asked for something ${MAX_ROUNDS} times over`);
  if (JSON.stringify(wants).length > MAX_ASKED_CHARS) return fail("what it asks for is too long to be kept");
  const questions = questionsFor(server.name, wants.requests, (index) =>
    call.questionId(state.questions + index),
  );
  if (typeof questions === "string") return fail(questions);
  await call.keepState({
    round,
    asked: { ...wants, questions },
    questions: state.questions + questions.length,
    answered,
  });
  return asking(call, questions);
}

async function send(
  call: McpCall,
  context: ToolContext,
  line: Line,
  responses: Continued["inputResponses"] | undefined,
): Promise<ToolResult> {
  const { server, entry, input, state, traceparent } = call;
  const { signal, callKey, onProgress } = context;
  const continued = responses && { inputResponses: responses, ...requestStateOf(state) };
  if (line.mark !== undefined) await call.keepState({ ...state, sent: line.mark });
  let result: Awaited<ReturnType<typeof callTool>>;
  try {
    const name = state.round === 0 ? callKey : `${callKey}r${state.round}`;
    const limits = { settings: server.settings, signal, onProgress: (note: string) => onProgress(0, note) };
    result = await line.exchange(name, (client) =>
      callTool(client, { entry, input, continued, traceparent }, limits),
    );
  } catch (error) {
    return failed(call, context, line, error);
  }
  if (isInputRequiredResult(result)) {
    const { inputRequests = {}, requestState } = result;
    const wants = { requests: inputRequests, requestState };
    // The server only asks to be called again with its state.
    if (Object.keys(inputRequests).length === 0) {
      if (state.round >= MAX_ROUNDS) return ask(call, { round: state.round + 1 }, wants);
      const next = { ...state, round: state.round + 1, asked: { ...wants, questions: [] } };
      await call.keepState(next);
      return send({ ...call, state: next }, context, line, {});
    }
    return ask(call, { round: state.round + 1 }, wants);
  }
  const task = taskOf(result);
  if (task === undefined) return toolResult(result, context);
  await call.keepState({ round: state.round, questions: state.questions }, task.taskId);
  const nextState = { round: state.round, questions: state.questions };
  return follow({ ...call, state: nextState }, context, line, { task: task.taskId, responses: undefined });
}

const requestStateOf = ({ asked }: CallState) =>
  asked?.requestState === undefined ? {} : { requestState: asked.requestState };

async function follow(
  call: McpCall,
  context: ToolContext,
  line: Line,
  { task, responses }: { readonly task: string; readonly responses: Continued["inputResponses"] | undefined },
): Promise<ToolResult> {
  const { server, attempt, state } = call;
  const { signal, callKey, onProgress } = context;
  const { settings } = server;
  const done = [...(state.answered ?? []), ...Object.keys(responses ?? {})];
  try {
    const end = await withRequests(line, `${callKey}t${attempt}`, async (request) => {
      try {
        if (responses !== undefined) {
          const limits = { timeout: settings.timeout, signal };
          await request((client) => updateTask(client, task, responses, limits));
          await call.keepState({ round: state.round, questions: state.questions, answered: done });
        }
        const note = (text: string) => onProgress(0, text);
        return await followTask(request, task, { settings, answered: done, signal, onProgress: note });
      } catch (error) {
        if (signal.aborted && !(signal.reason instanceof LeaveRunning))
          await request((client) => cancelTask(client, task)).catch(() => undefined);
        throw error;
      }
    });
    switch (end.kind) {
      case "completed":
        return await toolResult(end.result, context);
      case "asks":
        return await ask(call, { round: state.round + 1, answered: done }, { requests: end.requests });
      case "failed":
      case "cancelled":
        return { text: `The call failed. ${server.name}: ${end.reason}.`, isError: true };
      case "lost":
        return unknownEnd(call, `${server.name}: ${end.reason}; the task is ${oneLine(task, 200)}`);
    }
  } catch (error) {
    // The server has the call even if it cannot be reached at the moment.
    return failed(call, context, { ...line, isUnsent: () => false }, error);
  }
}

/** @param name each attempt polls under its own */
const withRequests = <T>(line: Line, name: string, body: (request: RequestOnce) => Promise<T>): Promise<T> =>
  line.request === undefined
    ? line.exchange(name, (client) => body((once) => once(client)))
    : body(line.request);

function failed(call: McpCall, { signal }: ToolContext, line: Line, error: unknown): ToolResult {
  if (signal.reason instanceof LeaveRunning) throw signal.reason;
  if (line.isLost?.(error) === true) throw error;
  return failedCall(call, error, { isSent: !line.isUnsent(error), isStopped: signal.aborted });
}
