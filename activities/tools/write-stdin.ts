import { z } from "zod";
import type { CommandState, Sandbox, TerminalLook, PtySize } from "../sandbox/sandbox.ts";
import { describeState, noSuchCommand } from "./bash-output.ts";
import { oneLine } from "./paths.ts";
import { drawApart } from "./terminal/draw-screen.ts";
import { KEY_NAMES, typedKeys, typedText } from "./terminal/keys.ts";
import { terminalResult } from "./terminal/terminal-result.ts";
import { failure, LeaveRunning, typedTool, type ToolContext, type ToolResult } from "./tool.ts";

/** Longest text of one call, in characters. Chosen: longer input is a file. */
const MAX_TEXT_CHARS = 32_768;
const MAX_KEYS = 200;
/** Longest wait for one call. Source: the tool's contract. */
const MAX_WAIT_MS = 30_000;
/** Without `wait_ms`: until it was silent for so long, and at most. Source: the same. */
export const QUIET_MS = 1_000;
export const USUAL_WAIT_MS = 5_000;
/** Silence that is enough if a program waits for input. Source: what Codex waits after each write. */
const ASK_MS = 250;
/** Unread input beyond which no more is taken: the program does not read. */
const MAX_UNREAD_BYTES = 262_144;
/** Longest line that the kernel passes to a program which takes whole lines: the rest is lost. Source: N_TTY_BUF_SIZE. */
const MAX_LINE_BYTES = 4_095;

export const terminalSides = {
  rows: z.number().int().min(2).max(200).optional(),
  cols: z.number().int().min(10).max(500).optional(),
};

const input = z.strictObject({
  id: z.string(),
  text: z.string().max(MAX_TEXT_CHARS).optional(),
  keys: z
    .union([z.array(z.string()).max(MAX_KEYS), z.string()])
    .optional()
    .describe("After text: ctrl+c, enter, up, f1."),
  wait_ms: z.number().min(0).max(MAX_WAIT_MS).optional().describe("At most 30000."),
  show: z.enum(["changes", "screen", "output"]).optional().describe("Default: changes."),
  ...terminalSides,
});
type Request = z.infer<typeof input>;

export const writeStdin = typedTool({
  name: "write_stdin",
  description:
    "Types into a command that bash started with terminal: true, waits until it asks or is silent; shows what changed. Without input it only looks.",
  input,
  readOnly: false,
  about: ({ id, text = "", keys = [] }) => oneLine(`${id} ${[text, ...[keys].flat()].join(" ")}`.trim(), 60),
  run,
});

async function run(request: Request, context: ToolContext): Promise<ToolResult> {
  const { id } = request;
  const { signal } = context;
  const sandbox = await context.sandbox();
  const state = await sandbox.state(id);
  if (state?.terminal === undefined)
    return context.resumed ? unknownEnd(id) : failure(await whyNot(sandbox, state, id));
  const isTyping = (request.text ?? "") !== "" || [request.keys ?? []].flat().length > 0;
  if (state.kind !== "running" && isTyping && !context.resumed)
    return failure(`Nothing was typed: "${id}" ${describeState(state)}.`);
  if (state.terminal.unreadBytes > MAX_UNREAD_BYTES && isTyping && !context.resumed)
    return failure(
      `Nothing was typed: "${id}" has not read ${state.terminal.unreadBytes.toLocaleString("en-US")} bytes of what was typed before.`,
    );
  if (signal.aborted) return stopped(signal, "[interrupted before anything was typed]");
  const size = await sizeNow(sandbox, request, state.terminal);
  const typed = await toType(request, sandbox, size);
  if (typeof typed !== "string") return typed;
  await sandbox.feed(id, { once: context.callKey }, Buffer.from(typed), { last: false });
  const show = request.show ?? "changes";
  const settled = await settle(request, sandbox, context);
  // Nothing is looked at, so what the program printed stays new to the next call.
  if (settled === undefined)
    return { text: "[interrupted while it waited: what was typed has been typed]", interrupted: true };
  const screenResult = await terminalResult(settled, settled.state.terminal ?? size, { show }, context);
  return settled.state.kind === "running" ? screenResult : { ...screenResult, endedCommands: [id] };
}

/** @returns undefined if a person interrupted the wait. @throws the reason if the worker stops */
async function settle(
  { id, wait_ms: waitMs }: Request,
  sandbox: Sandbox,
  { callKey, signal }: ToolContext,
): Promise<TerminalLook | undefined> {
  const timeoutMs = waitMs ?? USUAL_WAIT_MS;
  // Whoever says how long to wait waits for a program that may be silent while it works.
  const quietMs = waitMs ?? QUIET_MS;
  try {
    return await sandbox.look(id, { once: callKey, quietMs, askMs: ASK_MS, timeoutMs, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    if (signal.reason instanceof LeaveRunning) throw signal.reason;
    return undefined;
  }
}

async function sizeNow(
  sandbox: Sandbox,
  { id, rows, cols }: Pick<Request, "id" | "rows" | "cols">,
  size: PtySize,
): Promise<PtySize> {
  if (rows === undefined && cols === undefined) return size;
  const newSize = { rows: rows ?? size.rows, cols: cols ?? size.cols };
  return (await sandbox.resize(id, newSize)).terminal ?? newSize;
}

/** What is typed; or why nothing is. */
async function toType(
  { id, text = "", keys = [] }: Request,
  sandbox: Sandbox,
  size: PtySize,
): Promise<string | ToolResult> {
  const line = typedText(text);
  const names = [keys].flat();
  const usual = typedKeys(names, false);
  if ("unknown" in usual)
    return failure(
      `keys: there is no key "${oneLine(usual.unknown, 40)}". Keys: ${KEY_NAMES}. Nothing was typed.`,
    );
  const other = typedKeys(names, true);
  const isLong = line.split("\r").some((part) => Buffer.byteLength(part) > MAX_LINE_BYTES);
  if (!isLong && "text" in other && other.text === usual.text) return line + usual.text;
  const terminalLook = await sandbox.look(id, { isPeek: true, quietMs: 0, timeoutMs: 0 });
  if (isLong && terminalLook.takesLines === true)
    return failure(
      `text: "${id}" takes whole lines, and the kernel passes at most ${MAX_LINE_BYTES.toLocaleString("en-US")} bytes of one on. Nothing was typed: type shorter lines, or write a file and have the program read it.`,
    );
  if (!("text" in other) || other.text === usual.text) return line + usual.text;
  const drawn = await drawApart({ ...terminalLook, size });
  return line + (drawn?.screen.appKeys === true ? other.text : usual.text);
}

async function whyNot(sandbox: Sandbox, state: CommandState | undefined, id: string): Promise<string> {
  if (state === undefined) return noSuchCommand(sandbox, id);
  if (state.kind === "lost")
    return `Nothing was typed: the sandbox was restarted while "${id}" ran, so it is gone. Start it again with bash and terminal: true.`;
  return `Nothing was typed: "${id}" has no terminal, so it reads no input. Start the command with bash and terminal: true.`;
}

const unknownEnd = (id: string): ToolResult => ({
  unknown: true,
  text: [
    `It is not known whether this was typed: the worker stopped, and the sandbox was restarted or restored since, so "${id}" is gone.`,
    "It was not typed again. Look at what the program has done (files, git status) before you repeat it.",
  ].join("\n"),
});

function stopped(signal: AbortSignal, text: string): ToolResult {
  if (signal.reason instanceof LeaveRunning) throw signal.reason;
  return { text, interrupted: true };
}
