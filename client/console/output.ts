/** Where the client writes: results to stdout, everything else to stderr. A closed reader ends it quietly. */
import { styleText } from "node:util";
import { exitCodes, unwritable } from "./errors.ts";
import { harmlessJson, steered } from "./format.ts";
import { createRunnerGuard, type RunnerGuard } from "./runner-commands.ts";

export type TextStyle = "bold" | "dim" | "red" | "green" | "yellow" | "cyan" | "magenta" | "italic";
export type Style = (textStyle: TextStyle, text: string) => string;

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** On a narrower terminal, a status line has too little room and formatted text wraps too often. Chosen by judgement. */
const MIN_RICH_COLUMNS = 60;

/** styleText respects NO_COLOR and the terminal's abilities. */
function isRich(stream: NodeJS.WriteStream): boolean {
  const colours = styleText("bold", "x", { stream }) !== "x";
  return stream.isTTY === true && colours && stream.columns >= MIN_RICH_COLUMNS;
}

export type Output = Readonly<ReturnType<typeof processOutput>>;

/**
 * The process's own streams.
 * @param hints adapts `longhaul COMMAND …` to this shell
 * @param isRead whether a build runner reads the output: then nothing but our JSON may have the form of its commands
 */
export function processOutput(hints: (text: string) => string, isRead = false) {
  const { stdout, stderr } = process;
  const [results, messages] = [createRunnerGuard(), createRunnerGuard()];
  const inert = (guard: RunnerGuard, text: string) => (isRead ? guard.push(text) : text);
  const show = (text: string) => void stderr.write(inert(messages, steered(text)));
  const terminal = () => ({ columns: stderr.columns || 80, rows: stderr.rows || 24 });
  return {
    // Names, errors and answers may come from the agent, so no command lets them control the terminal.
    /** A result, on stdout. */
    result: (text: string) => void stdout.write(inert(results, stdout.isTTY ? steered(text) : text)),
    /** The program's own messages, on stderr. Hints, written `longhaul COMMAND …`, are adapted to this shell. */
    note: (text: string) => show(hints(text)),
    /** A session's output, on stderr unchanged. */
    show,
    /** Like `show`, but with cursor movements: the caller must clean untrusted text first. */
    draw: (text: string) => void stderr.write(inert(messages, text)),
    /** A result with hints for people, adapted as in `note`. */
    hints,
    /** One JSON document or event, on stdout. */
    json: (value: unknown, indent?: number) =>
      void stdout.write(`${harmlessJson(JSON.stringify(value, null, indent))}\n`),
    // styleText itself checks the stream, NO_COLOR and FORCE_COLOR.
    style: (textStyle: TextStyle, text: string) => styleText(textStyle, text, { stream: stderr }),
    columns: Math.max(40, Math.min(stderr.columns ?? 100, 160)),
    /** Current size of standard error, if that is a terminal. */
    terminal: stderr.isTTY === true ? terminal : undefined,
    /** Whether lines on standard error may be redrawn: true for a terminal that is wide enough and has colours. */
    isLive: isRich(stderr),
    /** Whether a result may be formatted for a terminal: the same check for standard output. */
    isRich: isRich(stdout),
    /** True if results go to a terminal. */
    isTerminal: stdout.isTTY === true,
    /** Whether a build runner reads both streams, as far as is known: what they lead to is not. */
    isRead,
    /** True if both streams are on one screen. */
    sameScreen: stdout.isTTY === true && stderr.isTTY === true,
  };
}

/**
 * `head` and `less` may close the pipe early. Then no one reads the remaining output, which is not an error. A file that
 * cannot take the output, such as on a full disk, is one.
 */
export function endWithoutReader(): void {
  const { stdout, stderr } = process;
  for (const stream of [stdout, stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED") process.exit(0);
      const { message } = unwritable("Standard output", error) as Error;
      if (stream === stdout) stderr.write(`longhaul: ${message}\n`);
      process.exit(exitCodes.impossible);
    });
  }
}
