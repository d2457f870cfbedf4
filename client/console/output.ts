/** Where the client writes: results to stdout, everything else to stderr. A closed reader ends it quietly. */
import { styleText } from "node:util";
import { harmlessJson, steered } from "./format.ts";

export interface Output {
  /** A result, on stdout. */
  readonly result: (text: string) => void;
  /** What the program says of itself, on stderr. Its hints, written `longhaul VERB …`, come out as this shell has to have them. */
  readonly note: (text: string) => void;
  /** What a session says, on stderr as it is. */
  readonly show: (text: string) => void;
  /** The same with what moves the cursor: nothing of others' may be in it that was not cleaned. */
  readonly draw: (text: string) => void;
  /** Hints in a result that people read, as `note` has them. */
  readonly hints: (text: string) => string;
  /** One JSON document or event, on stdout. */
  readonly json: (value: unknown, indent?: number) => void;
  readonly style: Style;
  readonly columns: number;
  /** Of standard error, where that is a terminal, as it is now. */
  readonly terminal: (() => TerminalSize) | undefined;
  /** Whether lines of standard error may be drawn again: a terminal with colours and room. */
  readonly isLive: boolean;
  /** Whether a result may be laid out: the same of standard output. */
  readonly isRich: boolean;
  /** True where results go to a terminal. */
  readonly isTerminal: boolean;
  /** True where a person sees both streams on one screen. */
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

/** styleText knows NO_COLOR and what the terminal can do. */
function isRich(stream: NodeJS.WriteStream): boolean {
  const colours = styleText("bold", "x", { stream }) !== "x";
  return stream.isTTY === true && colours && stream.columns >= MIN_RICH_COLUMNS;
}

/** The process's own streams. */
export function processOutput(hints: Output["hints"]): Output {
  const { stdout, stderr } = process;
  const show = (text: string) => void stderr.write(steered(text));
  return {
    // Names, errors and answers come from the agent: nothing of them steers the terminal, whichever command shows them.
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

/** `head` and `less` may close their end: what remains to be said has no reader, which is no error. */
export function endQuietlyWhenClosed(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED") process.exit(0);
      throw error;
    });
  }
}
