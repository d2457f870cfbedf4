/** The definition of a tool: declared once, one file each. `run-tool.ts` validates, runs, truncates, masks and stores. */
import type { z } from "zod";
import type { McpToolEntry, ToolLimits, SessionMemory } from "../contract/tools.ts";
import type { FilePart } from "../contract/message.ts";
import type { FetchedPage } from "../web/fetch-page.ts";
import type { WebRefusal } from "../web/web-rules.ts";
import type { TextRun } from "../text/streams.ts";
import type { Sandbox, FileAnswer } from "../sandbox/sandbox.ts";

export interface Tool<Input = unknown> {
  readonly name: string;
  /** The description that the model reads: what the tool does, its limits, when to use another. */
  readonly description: string;
  readonly input: z.ZodType<Input>;
  /** JSON schema that the model sees, if different from that of `input`. */
  readonly inputSchema?: Record<string, unknown>;
  /** Callable, but not in the request: a search finds it. */
  readonly isHidden?: boolean;
  /** Whether the tool changes nothing anywhere, which decides its use in a planning session; default: if it is read-only. */
  readonly onlyReads?: boolean;
  /** Whether the tool may change the workspace; default: unless it is read-only. */
  readonly changesFiles?: boolean;
  /** The MCP server that provides the tool. */
  readonly server?: string;
  /** The tool is the operator's own: its description does not refer to our workspace. */
  readonly isOwn?: true;
  /** Read-only tools simply run again after a crash; all others go through the ledger and are never repeated. */
  readonly readOnly: boolean;
  /** What people see of a call, as one line of at most 60 characters: a command's first line, a path. */
  about(input: Input): string;
  /**
   * Runs the tool. Failures are results with `isError`, worded to help the model continue.
   * Contract: throws only for what is not the tool's own failure (SandboxLost, the abort reason, a lost database).
   */
  run(input: Input, context: ToolContext): Promise<ToolResult>;
}

export interface ToolContext {
  /** Stable id of this call within the session (`s12c0`): names the supervised command and the output's handle. */
  readonly callKey: string;
  /** True if an earlier attempt may have started the call: check before acting. */
  readonly resumed: boolean;
  /** The container that the session had when the call was first claimed, if one was known. */
  readonly claimedIn?: string | undefined;
  readonly sandbox: () => Promise<Sandbox>;
  readonly limits: ToolLimits;
  readonly signal: AbortSignal;
  /** The session's memory: whole outputs and the transcript, for `read_output`, `search_history`, `todo`. */
  readonly memory: SessionMemory;
  /** A page of a text, masked by what the whole text reveals: see the sanitizer's `maskWindow`. */
  readonly maskWindow: (text: string, from: number, to: number) => string;
  /** The services of the session's sandbox; absent if it has none. */
  readonly services?: ServiceCalls | undefined;
  /** Calls to MCP servers; absent if this worker does not make any. */
  readonly mcp?: McpCalls | undefined;
  /** Calls one of the worker's own tools by name; undefined if it has no tool of that name. */
  readonly own?: OwnCalls | undefined;
  /** What the session may want of its followed pull request. */
  readonly follow?: FollowCalls | undefined;
  /** Requests to the web by the session's network rules; absent if this worker makes none. */
  readonly web?: WebCalls | undefined;
  /** Live note for watchers and the Web UI: at most 200 characters. */
  readonly onProgress: (bytes: number, lastLine: string | undefined) => void;
}

/** What a session wants to be written or done on its pull request once its round is over. */
interface FollowReply {
  readonly kind: "thread" | "check";
  /** A thread's id, or a check's name. */
  readonly target: string;
  readonly text: string;
  readonly outcome: "fixed" | "answered" | "declined" | "rerun";
}

export interface FollowCalls {
  /** Keeps it for the end of the round; the last one for a target counts. @returns why not, for the model */
  keep(reply: FollowReply): Promise<string | undefined>;
}

export interface WebCalls {
  /** One page. Expected failures are refusals with words for the model; throws as `Tool.run` does. */
  readPage(url: string, context: Pick<ToolContext, "limits" | "signal">): Promise<FetchedPage | WebRefusal>;
}

/** What a tool may ask of the services of the session's sandbox. */
export interface ServiceCalls {
  readonly names: readonly string[];
  /** The kept part of a service's log, at most 1 MB; undefined if it was not started. */
  log(name: string): Promise<string | undefined>;
  /** Starts a service again. @returns how it went, for the model */
  restart(name: string): Promise<ServiceRestart>;
}

export interface ServiceRestart {
  readonly text: string;
  readonly works: boolean;
}

export type OwnCalls = (
  name: string,
  input: Record<string, unknown>,
  context: ToolContext,
) => Promise<ToolResult> | undefined;

/** What the tools of MCP servers need from the worker. */
export interface McpCalls {
  /** Calls a tool under the server's own name for it. Failures are returned as results; throws as `Tool.run` does. */
  call(
    tool: { readonly server: string; readonly entry: McpToolEntry; readonly isRepeatable: boolean },
    input: Record<string, unknown>,
    context: ToolContext,
  ): Promise<ToolResult>;
  /** Makes tools that a search found callable from the next step on. */
  keepFound(tools: readonly { readonly server: string; readonly name: string }[]): Promise<void>;
}

/** Questions that a server asks before it continues with a call. */
export interface ServerAsks {
  readonly server: string;
  readonly questions: readonly {
    readonly id: string;
    readonly about: string;
    readonly isOptional?: true;
  }[];
}

export interface ToolResult {
  /** What the model sees, before truncation. For a very long output: its head, the middle left out. */
  readonly text: string;
  /** The runs of a command's output, with which `text` begins. */
  readonly runs?: readonly TextRun[];
  readonly isError?: boolean;
  readonly files?: readonly FilePart[];
  readonly exitCode?: number;
  /** The process was ended by the person's cancel or interrupt. */
  readonly interrupted?: boolean;
  /** The call started, but its outcome is unknown. */
  readonly unknown?: boolean;
  /** The result is the state of a command that still runs. */
  readonly isLive?: boolean;
  /** The call has started a command in the background: it runs, or the result tells of its end already. */
  readonly background?: "running" | "told";
  /** Commands in the background of whose ends the result tells. */
  readonly endedCommands?: readonly string[];
  /** The call has no result yet: its server must first ask a person something. */
  readonly asks?: ServerAsks;
  /** The whole output if `text` is only a part of it; it is stored under the call's handle. */
  readonly whole?: { readonly chars: number; readonly pieces: () => AsyncIterable<string> };
}

/**
 * Infers the input type of `run` and `about` from the schema, then drops it, so that tools share one list.
 * `invokeTool` parses each input with the schema before it calls them.
 */
export function typedTool<Input>(tool: Tool<Input>): Tool {
  return tool;
}

/** A tool's own failure, thrown deep inside it; `invokeTool` turns it into a result for the model. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";
}

/**
 * Abort reason that stops waiting but leaves the command running: the worker shuts down or hands over, and the next
 * attempt resumes waiting. Any other reason ends the command.
 */
export class LeaveRunning extends Error {
  override readonly name = "LeaveRunning";
}

/** A failure as a result: what happened, the limit, what to do next. */
export function failure(text: string): ToolResult {
  return { text, isError: true };
}

type Refusal = Extract<FileAnswer<unknown>, { readonly ok: false }>;

/**
 * Unwraps the sandbox's answer.
 * @param hints what to do next, by the reason of a refusal
 * @throws ToolFailure for a refusal, with the sandbox's message and the hint
 */
export function accepted<T>(
  answer: FileAnswer<T>,
  hints: Partial<Record<Refusal["reason"], string>> = {},
): T {
  if (answer.ok) return answer;
  const { message, reason } = answer;
  const hint = hints[reason];
  if (hint === undefined) throw new ToolFailure(message);
  throw new ToolFailure(`${message}${/[.!?]$/.test(message) ? "" : "."} ${hint}`);
}
