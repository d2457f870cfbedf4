import { z } from "zod";
import type { CommandState, Sandbox } from "../sandbox/sandbox.ts";
import { readBytes } from "../sandbox/command-output.ts";
import { terminalText } from "../sandbox/terminal-text.ts";
import { diskNote } from "./bash-result.ts";
import { failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { oneLine } from "./paths.ts";
import { noSuchService } from "./restart-service.ts";

const input = z.strictObject({
  id: z.string(),
  offset: z.number().int().min(0).optional().describe("Byte to read from: the last answer's next offset."),
});

/** Characters reserved for the lines about the command itself. */
const NOTE_CHARS = 400;
/** Bytes read before and after a page because a secret may start or end there: more than a private key in base64 takes. */
const AROUND_BYTES = 8_192;

export const bashOutput = typedTool({
  name: "bash_output",
  description:
    "Shows a background command's state and newest output, or its output from `offset` on. Does not wait.",
  input,
  readOnly: true,
  about: (request) => request.id,
  run,
});

/** Before the name of a service, in place of a command's id. */
const SERVICE_PREFIX = "service:";

async function run(request: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  if (request.id.startsWith(SERVICE_PREFIX)) return serviceLog(request, context);
  const sandbox = await context.sandbox();
  const state = await sandbox.state(request.id);
  if (state === undefined) return failure(await noSuchCommand(sandbox, request.id));
  // A byte is at most one UTF-16 unit of text, so this many bytes never exceed the limit.
  const room = Math.max(1, context.limits.maxChars - NOTE_CHARS);
  const from = request.offset ?? Math.max(0, state.outKept - room);
  if (from > state.outKept) {
    return failure(
      `offset ${from} is beyond the end of the output, which has ${state.outKept} bytes. ${describeState(state)}`,
    );
  }
  const page = await readOutputPage(
    sandbox,
    request.id,
    { from, to: Math.min(from + room, state.outKept) },
    context,
  );
  const { next } = page;
  const notes = [
    request.offset === undefined && from > 0 ? `[bytes 0-${from} left out: read them with offset=0]` : "",
    terminalText(page.text).replace(/\n$/, ""),
    `[${describeState(state)}; next offset=${next}${next < state.outKept ? ", more is available" : ""}]`,
  ];
  return {
    text: notes.filter((note) => note !== "").join("\n"),
    isLive: state.kind === "running",
    exitCode: state.kind === "exited" ? state.exitCode : undefined,
    endedCommands: state.kind === "running" ? undefined : [request.id],
  };
}

/** A page of a service's log, of which the engine keeps 1 MB. */
async function serviceLog({ id, offset }: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const name = id.slice(SERVICE_PREFIX.length);
  const { services } = context;
  if (services === undefined || !services.names.includes(name)) return failure(noSuchService(name, context));
  const log = await services.log(name);
  if (log === undefined) return failure(`The service ${name} was not started.`);
  const room = Math.max(1, context.limits.maxChars - NOTE_CHARS);
  const from = Math.min(offset ?? Math.max(0, log.length - room), log.length);
  const to = Math.min(log.length, from + room);
  const text = terminalText(context.maskWindow(log, from, to)).replace(/\n$/, "");
  const notes = [
    from > 0 ? `[the ${from} characters before this are left out: read them with offset=0]` : "",
    text,
    `[log of the service ${name}; next offset=${to}${to < log.length ? ", more is available" : ""}]`,
  ];
  return { text: notes.filter((note) => note !== "").join("\n"), isLive: true };
}

/** A page's text and where the next page starts. A secret that crosses a page's edge is masked in both pages. */
export async function readOutputPage(
  sandbox: Sandbox,
  id: string,
  { from, to }: { readonly from: number; readonly to: number },
  context: Pick<ToolContext, "maskWindow">,
): Promise<{ text: string; next: number }> {
  const first = Math.max(0, from - AROUND_BYTES);
  const bytes = await readBytes(sandbox, { id, from: first, length: to - first + AROUND_BYTES });
  const page = wholeCharacters(bytes.subarray(from - first, to - first));
  const start = from - first + page.start;
  const end = from - first + page.end;
  const before = new TextDecoder().decode(bytes.subarray(0, start));
  const after = new TextDecoder().decode(bytes.subarray(end));
  const text = before + page.text + after;
  return {
    text: context.maskWindow(text, before.length, before.length + page.text.length),
    next: from + page.end,
  };
}

/** Text of the bytes without characters that are cut off at either end, and that text's position. */
function wholeCharacters(bytes: Uint8Array): { text: string; start: number; end: number } {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0b1100_0000) === 0b1000_0000) start += 1;
  let end = bytes.length;
  for (let back = 1; back <= 3 && back < bytes.length; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    const needs = 1 + [0xc0, 0xe0, 0xf0].filter((least) => byte >= least).length;
    if (needs > back) end = bytes.length - back;
    if (byte < 0x80 || byte >= 0xc0) break;
  }
  return { text: new TextDecoder().decode(bytes.subarray(start, end)), start, end };
}

export function describeState(state: CommandState): string {
  switch (state.kind) {
    case "running":
      return `running for ${(Math.max(0, Date.now() - state.startedAtMs) / 1_000).toFixed(0)} s`;
    case "exited":
      return `exited with code ${state.exitCode} after ${(state.durationMs / 1_000).toFixed(1)} s`;
    case "killed":
      if (state.by === "disk") return `ended because of the disk: ${diskNote(state) ?? ""}`;
      return `ended by ${state.signal} (${state.by}) after ${(state.durationMs / 1_000).toFixed(1)} s`;
    case "refused":
      return `not started: ${state.reason}`;
    case "lost":
      return "the sandbox was restarted while it ran; how it ended is not known";
  }
}

/** Says that no command has this id, and which there are. Ids of our own helpers have a dash. */
export async function noSuchCommand(sandbox: Sandbox, id: string): Promise<string> {
  const started = (await sandbox.list()).filter((state) => !state.id.includes("-"));
  const running = started.filter((state) => state.kind === "running").map((state) => state.id);
  const how = "bash starts one in the background with background: true.";
  const none =
    started.length === 0
      ? `No command has been started in this sandbox at all: ${how}`
      : `None is running: ${how}`;
  const runningNote = running.length === 0 ? none : `Running: ${running.slice(-20).join(", ")}.`;
  return `No command with the id "${oneLine(id, 60)}" was ever started in this sandbox. ${runningNote}`;
}
