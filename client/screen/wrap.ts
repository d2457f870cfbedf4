/** Wraps text for a terminal: between words, never inside one that fits. */
import stringWidth from "string-width";
import wrapAnsi from "wrap-ansi";

/** A line's leading colours and indentation. */
const START = new RegExp(String.raw`^((?:\u001b\[[\d;]*m)*)( *)`);

/** Continuation lines are indented like the line itself, in any colour. */
export function wrapped(text: string, columns: number): string {
  return text
    .split("\n")
    .map((line) => {
      if (stringWidth(line) <= columns) return line;
      const [start = "", colours = "", indent = ""] = START.exec(line) ?? [];
      const inner = wrapAnsi(colours + line.slice(start.length), Math.max(10, columns - indent.length), {
        hard: true,
      });
      return inner
        .split("\n")
        .map((part) => indent + part)
        .join("\n");
    })
    .join("\n");
}

/** Cuts the text to one line of at most `columns` cells; colour sequences stay intact. */
export function fitted(text: string, columns: number): string {
  if (stringWidth(text) <= columns) return text;
  const [first = ""] = wrapAnsi(text, Math.max(1, columns - 1), {
    hard: true,
    wordWrap: false,
    trim: false,
  }).split("\n");
  return `${first}…`;
}

/** Wraps text that arrives in pieces and cannot be reprinted: a word is held back until it is complete. */
export class WordWrap {
  readonly #columns: number;
  #column = 0;
  #word = "";
  #space = "";

  constructor(columns: number) {
    this.#columns = columns;
  }

  /** @returns what can be printed so far */
  push(text: string): string {
    let out = "";
    for (const piece of text.split(/(\n|[ \t]+)/)) {
      if (piece === "\n") {
        out += `${this.#take()}\n`;
        this.#column = 0;
        this.#space = "";
      } else if (/^[ \t]/.test(piece)) {
        out += this.#take();
        this.#space += piece;
      } else this.#word += piece;
    }
    return out;
  }

  /** @returns the rest; a new line begins after it */
  end(): string {
    const rest = this.#take();
    this.#column = 0;
    this.#space = "";
    return rest;
  }

  #take(): string {
    const word = this.#word;
    if (word === "") return "";
    const width = stringWidth(word);
    const breaks = this.#column > 0 && this.#column + this.#space.length + width > this.#columns;
    const before = breaks ? "\n" : this.#space;
    this.#column = (breaks ? 0 : this.#column + before.length) + width;
    this.#word = "";
    this.#space = "";
    return before + word;
  }
}
