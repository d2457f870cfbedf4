/**
 * What a terminal shows after a command's output: drawn by xterm's own parser, in a thread of its own (`draw-screen.ts`), since the
 * output is a stranger's. Pure: the same bytes give the same screen.
 */
import { parentPort, workerData } from "node:worker_threads";
import xterm from "@xterm/headless";
import type { PtySize } from "../../sandbox/sandbox.ts";

/** What is to be drawn. Places are in bytes of all output. */
export interface Drawing {
  readonly bytes: Uint8Array;
  readonly bytesFrom: number;
  /** Where the output begins that was not shown before. */
  readonly newFrom: number;
  readonly size: PtySize;
}

export interface Screen {
  /** Rows that scrolled away, then those of the screen, without blanks at their ends. */
  readonly rows: readonly string[];
  /** Rows that continue the one above, as the terminal broke a line that was too long. */
  readonly wrapped: readonly number[];
  /** The first row of the screen. */
  readonly top: number;
  /** From 1, in the screen. */
  readonly cursor: { readonly row: number; readonly column: number };
  /** The second screen of editors and pagers, from which nothing scrolls away. */
  readonly isWhole: boolean;
  /** Arrow keys are sent as `ESC O` and not `ESC [`. */
  readonly appKeys: boolean;
}

export interface Drawn {
  readonly screen: Screen;
  /** Rows that differ from what was shown before. */
  readonly changed: readonly number[];
  /** There was more new output than can be drawn, or than rows are kept. */
  readonly isCut: boolean;
}

/** Rows kept above the screen. Chosen: with 80 columns more than the longest result has characters. */
const SCROLLBACK_ROWS = 2_000;
/** Source: the parser does a sequence as often as its number says; a larger one than a screen has rows draws nothing else. */
const MOST_TIMES = 1_000;
/** Sequences that are done as often as their number says: repeat, insert, delete and scroll lines, tabulators. */
const REPEATED = ["b", "L", "M", "S", "T", "I", "Z"];
/** A cut output is drawn from its first whole line, if there is one so near. */
const MAX_LINE_BYTES = 4_096;

/** Data of the thread that draws. */
export const DRAWS = "draws screens";

type Terminal = InstanceType<typeof xterm.Terminal>;

export async function drawScreen({ bytes, bytesFrom, newFrom, size }: Drawing): Promise<Drawn> {
  const { rows, cols } = size;
  const terminal = new xterm.Terminal({
    rows,
    cols,
    scrollback: SCROLLBACK_ROWS,
    allowProposedApi: true,
    logLevel: "off",
  });
  for (const final of REPEATED)
    terminal.parser.registerCsiHandler({ final }, ([times]) => Number(times) > MOST_TIMES);
  const start = bytesFrom === 0 ? 0 : firstWholeLine(bytes);
  const known = Math.max(start, Math.min(newFrom - bytesFrom, bytes.length));
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  await write(terminal, decoder.decode(bytes.subarray(start, known), { stream: true }));
  const isUnseen = newFrom < bytesFrom + start;
  const before = isUnseen ? undefined : screenOf(terminal);
  // The second screen has no markers, and needs none: nothing scrolls away there.
  const mark = terminal.registerMarker(before === undefined ? 0 : 1 - before.cursor.row);
  await write(terminal, decoder.decode(bytes.subarray(known)));
  const screen = screenOf(terminal);
  const markedRow = mark === undefined || mark.isDisposed ? -1 : mark.line;
  const oldTop = screen.isWhole ? screen.top : markedRow;
  const drawn = {
    screen,
    changed: changedRows(before, screen, oldTop < 0 ? undefined : oldTop),
    isCut: isUnseen || (before?.isWhole === false && !screen.isWhole && oldTop < 0),
  };
  terminal.dispose();
  return drawn;
}

const write = (terminal: Terminal, text: string): Promise<void> =>
  new Promise((resolve) => {
    terminal.write(text, resolve);
  });

function firstWholeLine(bytes: Uint8Array): number {
  const at = bytes.subarray(0, MAX_LINE_BYTES).indexOf(0x0a);
  return at + 1;
}

function screenOf(terminal: Terminal): Screen {
  const buffer = terminal.buffer.active;
  const lines = Array.from({ length: buffer.length }, (_, at) => buffer.getLine(at));
  return {
    rows: lines.map((line) => line?.translateToString(true) ?? ""),
    wrapped: lines.flatMap((line, at) => (line?.isWrapped === true ? [at] : [])),
    top: buffer.baseY,
    cursor: { row: buffer.cursorY + 1, column: buffer.cursorX + 1 },
    isWhole: buffer.type === "alternate",
    appKeys: terminal.modes.applicationCursorKeysMode,
  };
}

/** @param oldTop where the first row of the old screen is now; undefined if it is gone, or was not kept apart */
function changedRows(before: Screen | undefined, after: Screen, oldTop: number | undefined): number[] {
  const last = lastUsed(after);
  const isSame = before?.isWhole === after.isWhole;
  if (before === undefined || !isSame || oldTop === undefined) {
    const from = before === undefined || isSame ? 0 : after.top;
    return numbers(from, last);
  }
  const differs = (row: number): boolean =>
    after.rows[row] !== (before.rows[before.top + row - oldTop] ?? "");
  const rows = numbers(oldTop, Math.max(last, oldTop + lastUsed(before) - before.top)).filter(differs);
  if (after.isWhole || rows.length === 0) return rows;
  // Where lines scroll, what follows the first change is read as one text.
  return numbers(rows[0] ?? 0, last);
}

const lastUsed = ({ rows, top, cursor }: Screen): number =>
  Math.max(
    rows.findLastIndex((row) => row !== ""),
    top + cursor.row - 1,
  );

const numbers = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at);

if (workerData === DRAWS) {
  parentPort?.once("message", (drawing: Drawing) => {
    void drawScreen(drawing).then((drawn) => parentPort?.postMessage(drawn));
  });
}
