/** What the model sees of a terminal: what appeared, or all of its screen; where the cursor is; what the program does. */
import type { CommandState, TerminalLook, PtySize } from "../../sandbox/sandbox.ts";
import { terminalText } from "../../sandbox/terminal-text.ts";
import { cleanText } from "../../text/clean.ts";
import type { ToolContext, ToolResult } from "../tool.ts";
import { describeState } from "../bash-output.ts";
import { drawApart } from "./draw-screen.ts";
import type { Drawn, Screen } from "./screen.ts";

type Show = "changes" | "screen" | "output";

/** Bytes before what is new, in which a secret may begin: more than a private key in base64 takes. */
const BEFORE_BYTES = 8_192;

interface Shown {
  readonly show: Show;
  /** Lines above it, as about how it was started. */
  readonly intro?: string;
}

export async function terminalResult(
  terminalLook: TerminalLook,
  size: PtySize,
  { show, intro }: Shown,
  { maskWindow }: Pick<ToolContext, "maskWindow">,
): Promise<ToolResult> {
  const { state, bytes, bytesFrom, newFrom } = terminalLook;
  const drawn = await drawApart({ bytes, bytesFrom, newFrom, size });
  const isDrawn = drawn !== undefined && show !== "output";
  const body = isDrawn ? drawnText(drawn, show, size, maskWindow) : outputText(terminalLook, maskWindow);
  const lines = [
    intro ?? "",
    body,
    ...notesOf(terminalLook, drawn, show),
    statusLine(terminalLook, drawn?.screen, size),
  ];
  return {
    text: lines.filter((line) => line !== "").join("\n"),
    isLive: state.kind === "running",
    exitCode: state.kind === "exited" ? state.exitCode : undefined,
  };
}

type Masked = ToolContext["maskWindow"];

function drawnText({ screen, changed }: Drawn, show: Show, size: PtySize, mask: Masked): string {
  const { rows, top } = screen;
  if (show === "changes" && changed.length === 0) return "(nothing new)";
  const [text, offsets] = joined(screen, size);
  const part = (from: number, to: number) => {
    const masked = mask(text, offsets[from] ?? 0, offsets[to] ?? text.length);
    const plain = rows.slice(from, to).join("\n");
    // The rows as they are, but where a secret was broken at the edge of the screen.
    return masked === text.slice(offsets[from] ?? 0, offsets[to] ?? text.length)
      ? plain
      : masked.replace(/\n$/, "");
  };
  if (show === "screen") return part(top, lastRow(rows) + 1) || "(the screen is empty)";
  if (screen.isWhole && changed.length < size.rows)
    return changed.map((row) => `${row - top + 1}: ${part(row, row + 1)}`).join("\n");
  return part(changed[0] ?? 0, (changed.at(-1) ?? 0) + 1).replace(/\n+$/, "") || "(the screen is empty)";
}

const lastRow = (rows: readonly string[]): number => rows.findLastIndex((row) => row !== "");

/** All rows as one text, in which a line that was broken at the screen's edge is whole, and where each row begins in it. */
function joined({ rows, wrapped }: Screen, { cols }: PtySize): [text: string, offsets: number[]] {
  const continued = new Set(wrapped);
  const offsets: number[] = [];
  let text = "";
  for (const [at, row] of rows.entries()) {
    const above = rows[at - 1];
    // Programs that draw for themselves break lines where the row is full.
    if (above !== undefined && !continued.has(at) && above.length < cols) text += "\n";
    offsets.push(text.length);
    text += row;
  }
  return [text, offsets];
}

/** What is new of the output itself. */
function outputText({ bytes, bytesFrom, newFrom }: TerminalLook, mask: Masked): string {
  const from = Math.min(Math.max(0, newFrom - bytesFrom), bytes.length);
  const first = Math.max(0, from - BEFORE_BYTES);
  const before = cleanText(new TextDecoder().decode(bytes.subarray(first, from)));
  const fresh = cleanText(terminalText(new TextDecoder().decode(bytes.subarray(from))));
  const text = before + fresh;
  return mask(text, before.length, text.length).replace(/\n$/, "") || "(nothing new)";
}

function notesOf(
  { state, bytes, bytesFrom, newFrom }: TerminalLook,
  drawn: Drawn | undefined,
  show: Show,
): string[] {
  const notes: string[] = [];
  const isCut = drawn === undefined || show === "output" ? newFrom < bytesFrom : drawn.isCut;
  if (isCut && show !== "screen")
    notes.push(`[more than this was new: bash_output id="${state.id}" has all of the output]`);
  if (drawn === undefined && show !== "output")
    notes.push("[the screen could not be drawn: this is the output as it came]");
  if (bytesFrom + bytes.length < state.outBytes)
    notes.push("[the sandbox's disk is full: newer output could not be kept, and is not shown]");
  return notes;
}

function statusLine(terminalLook: TerminalLook, screen: Screen | undefined, { rows, cols }: PtySize): string {
  const { state, waits, echoes, takesLines } = terminalLook;
  const { unreadBytes = 0 } = state.terminal ?? {};
  const parts: string[] = [];
  if (screen !== undefined && state.kind === "running")
    parts.push(`[cursor: row ${screen.cursor.row}, column ${screen.cursor.column} of ${rows} × ${cols}]`);
  parts.push(`[${activityOf(state, waits)}]`);
  if (state.kind === "running") {
    if (waits === undefined) parts.push("[whether it waits for input cannot be told in this sandbox]");
    if (echoes === false && takesLines === true)
      parts.push("[what is typed is not shown, as for a password]");
    if (unreadBytes > 0)
      parts.push(`[${unreadBytes.toLocaleString("en-US")} bytes of what was typed are not read yet]`);
  }
  return parts.join(" ");
}

function activityOf(state: CommandState, waits: boolean | undefined): string {
  if (state.kind === "running") return waits === true ? "waits for input" : "running";
  return state.kind === "exited" ? `exited ${state.exitCode}` : describeState(state);
}
