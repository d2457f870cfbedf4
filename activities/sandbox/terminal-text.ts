/**
 * What a terminal shows at the end of an output: a progress bar that was drawn 3,000 times is one line. Understood: carriage
 * return, backspace, and the sequences that move the cursor or erase. Colours and all else go to the sanitizer, which removes them.
 */

/** CSI sequences with their numbers and their letter, and single controls; text is what lies between. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /\r\n|[\r\n\b]|\u001bc|\u001b\[([0-9;?]{0,32})([A-Za-z@`])/g;
/** Whether there is anything to do. */
// oxlint-disable-next-line no-control-regex
const REDRAWN = /[\r\b]|\u001bc|\u001b\[[0-9;?]{0,32}[A-HJKPXf`hl]/;
/** A title, or a link, which no cell shows. */
// oxlint-disable-next-line no-control-regex
const INVISIBLE = /\u001b\][^\u0007\u001b]{0,2000}(?:\u0007|\u001b\\)/g;

/** How far a cursor is sent to the right of all text: wider than a terminal, and little for many rows. */
const MAX_COLUMN = 300;
/** Rows above the cursor that can still change. Source: no terminal is higher. */
const MAX_ROWS = 500;

/** Larger numbers in a sequence mean the same. */
const MAX_COUNT = 10_000;

interface Screen {
  /** Rows that cannot change any more. */
  readonly done: string[];
  /** Characters of the last rows; a combining mark is a character of its own. */
  readonly rows: string[][];
  row: number;
  column: number;
  /** Where a program that draws on the whole screen began: each clearing begins again here, so what was above remains. */
  page: number | undefined;
}

export function terminalText(printed: string): string {
  if (!REDRAWN.test(printed)) return printed;
  const text = printed.replace(INVISIBLE, "");
  const screen: Screen = { done: [], rows: [[]], row: 0, column: 0, page: undefined };
  let at = 0;
  for (const match of text.matchAll(CONTROL)) {
    write(screen, text.slice(at, match.index));
    at = match.index + match[0].length;
    const [control, numbers = "", letter] = match;
    if (letter !== undefined) sequence(screen, letter, numbers);
    else if (control === "\u001bc") clear(screen);
    else if (control === "\r") screen.column = 0;
    else if (control === "\b") screen.column = Math.max(0, screen.column - 1);
    else newLine(screen);
  }
  write(screen, text.slice(at));
  return [...screen.done, ...screen.rows.map((row) => toLine(row))].join("\n");
}

/** Erased to the right of text, nothing remains; blanks that were printed do. */
const ERASED = "";

const toLine = (row: readonly string[]): string => {
  const last = row.findLastIndex((char) => char !== ERASED);
  return row
    .slice(0, last + 1)
    .map((char) => (char === ERASED ? " " : char))
    .join("");
};

function rowOf(screen: Screen): string[] {
  while (screen.rows.length <= screen.row) screen.rows.push([]);
  return screen.rows[screen.row] ?? [];
}

function write(screen: Screen, text: string): void {
  if (text === "") return;
  const row = rowOf(screen);
  while (row.length < screen.column) row.push(ERASED);
  for (const char of text) {
    row[screen.column] = char;
    screen.column += 1;
  }
}

function newLine(screen: Screen): void {
  screen.row += 1;
  screen.column = 0;
  rowOf(screen);
  if (screen.rows.length <= MAX_ROWS * 2) return;
  const overflow = screen.rows.splice(0, MAX_ROWS);
  screen.done.push(...overflow.map((row) => toLine(row)));
  screen.row = Math.max(0, screen.row - MAX_ROWS);
  if (screen.page !== undefined) screen.page = Math.max(0, screen.page - MAX_ROWS);
}

function pageOf(screen: Screen): number {
  if (screen.page === undefined) {
    screen.row = screen.rows.length - 1;
    if (rowOf(screen).length > 0) newLine(screen);
    screen.page = screen.row;
  }
  return screen.page;
}

function clear(screen: Screen): void {
  const page = pageOf(screen);
  screen.rows.length = Math.min(screen.rows.length, page);
  screen.row = page;
  screen.column = 0;
  rowOf(screen);
}

function sequence(screen: Screen, letter: string, numbers: string): void {
  const [first = "", second = ""] = numbers.split(";");
  const count = Math.min(Math.max(1, Number(first) || 1), MAX_COUNT);
  switch (letter) {
    case "A":
    case "F":
      return move(screen, screen.row - count, letter === "F" ? 0 : screen.column);
    case "B":
    case "E":
      return move(screen, screen.row + count, letter === "E" ? 0 : screen.column);
    case "C":
      return move(screen, screen.row, screen.column + count);
    case "D":
      return move(screen, screen.row, screen.column - count);
    case "G":
    case "`":
      return move(screen, screen.row, count - 1);
    case "H":
    case "f":
      return move(screen, pageOf(screen) + Math.min(count, MAX_ROWS) - 1, (Number(second) || 1) - 1);
    case "J":
      return eraseBelow(screen, Number(first) || 0);
    case "K":
      return eraseInLine(screen, Number(first) || 0);
    case "P":
      rowOf(screen).splice(screen.column, count);
      return;
    case "X":
      rowOf(screen).fill(ERASED, screen.column, screen.column + count);
      return;
    case "h":
    case "l":
      // The second screen of editors and pagers: nothing on it remains.
      if (/^\?(?:1049|1047|47)$/.test(numbers)) clear(screen);
  }
}

/** The cursor stays within what has been drawn, and one screen. */
function move(screen: Screen, row: number, column: number): void {
  screen.row = Math.min(Math.max(0, row), Math.max(screen.rows.length - 1, (screen.page ?? 0) + MAX_ROWS));
  if (screen.page === undefined) screen.row = Math.min(screen.row, screen.rows.length - 1);
  screen.column = Math.min(Math.max(0, column), Math.max(MAX_COLUMN, screen.column));
}

/** @param part 0: from the cursor on; 2 and 3: the whole screen */
function eraseBelow(screen: Screen, part: number): void {
  if (part === 1) return;
  if (part !== 0) return clear(screen);
  eraseInLine(screen, 0);
  screen.rows.length = screen.row + 1;
}

/** @param part 0: from the cursor on, 1: up to the cursor, 2: all */
function eraseInLine(screen: Screen, part: number): void {
  const row = rowOf(screen);
  if (part === 0) row.length = Math.min(row.length, screen.column);
  else row.fill(ERASED, 0, part === 1 ? screen.column + 1 : row.length);
}
