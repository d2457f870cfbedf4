/** Where the client writes: results to stdout, everything else to stderr. A closed reader ends it quietly. */
import { styleText } from "node:util";
import { harmlessJson, steered } from "./format.ts";

export interface Output {
  /** A result, on stdout. */
  readonly result: (text: string) => void;
  /** The program's own messages, on stderr. Hints, written `longhaul COMMAND …`, are adapted to this shell. */
  readonly note: (text: string) => void;
  /** A session's output, on stderr unchanged. */
  readonly show: (text: string) => void;
  /** The same with cursor movements: others' texts must be cleaned before. */
  readonly draw: (text: string) => void;
  /** A result with hints for people, adapted as in `note`. */
  readonly hints: (text: string) => string;
  /** One JSON document or event, on stdout. */
  readonly json: (value: unknown, indent?: number) => void;
  readonly style: Style;
  readonly columns: number;
  /** Current width of standard error, if that is a terminal. */
  readonly terminal: (() => TerminalSize) | undefined;
  /** Whether lines on standard error may be redrawn: a terminal with colours and room. */
  readonly isLive: boolean;
  /** Whether a result may be laid out: the same for standard output. */
  readonly isRich: boolean;
  /** True if results go to a terminal. */
  readonly isTerminal: boolean;
  /** True if both streams are on one screen. */
  readonly sameScreen: boolean;
}

export type Look = "bold" | "dim" | "red" | "green" | "yellow" | "cyan" | "magenta" | "italic";
export type Style = (look: Look, text: string) => string;

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** Below this a status line says too little, and laid-out text breaks too often. Source: issue 14. */
const MIN_RICH_COLUMNS = 60;

/** styleText respects NO_COLOR and the terminal's abilities. */
function isRich(stream: NodeJS.WriteStream): boolean {
  const colours = styleText("bold", "x", { stream }) !== "x";
  return stream.isTTY === true && colours && stream.columns >= MIN_RICH_COLUMNS;
}

/** The process's own streams. */
export function processOutput(hints: Output["hints"]): Output {
  const { stdout, stderr } = process;
  const show = (text: string) => void stderr.write(steered(text));
  return {
    // Names, errors and answers come from the agent: no command lets them control the terminal.
    result: (text) => void stdout.write(stdout.isTTY ? steered(text) : text),
    note: (text) => show(hints(text)),
    show,
    draw: (text) => void stderr.write(text),
    hints,
    json: (value, indent) => void stdout.write(`${harmlessJson(JSON.stringify(value, null, indent))}\n`),
    // styleText looks at the stream, NO_COLOR and FORCE_COLOR itself.
    style: (look, text) => styleText(look, text, { stream: stderr }),
    columns: Math.max(40, Math.min(stderr.columns ?? 100, 160)),
    terminal:
      stderr.isTTY === true ? () => ({ columns: stderr.columns || 80, rows: stderr.rows || 24 }) : undefined,
    isLive: isRich(stderr),
    isRich: isRich(stdout),
    isTerminal: stdout.isTTY === true,
    sameScreen: stdout.isTTY === true && stderr.isTTY === true,
  };
}

/** `head` and `less` may close their end: the remaining output has no reader, which is not an error. */
export function endQuietlyWhenClosed(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED") process.exit(0);
      throw error;
    });
  }
}
