/** The last lines of a terminal, drawn again and again below what stays. */
import stringWidth from "string-width";
import { steered } from "../console/format.ts";
import type { TerminalSize } from "../console/output.ts";

const ERASE_LINE = "\r\u001b[2K";
const UP = "\u001b[1A";

/** What is printed goes above the area. Each change is one write, so that nothing flickers. */
export class LiveArea {
  readonly #write: (text: string) => void;
  readonly #size: () => TerminalSize;
  #lines: readonly string[] = [];
  #drawn: readonly string[] = [];

  /** @param write takes escape sequences as they are; texts are cleaned here */
  constructor(write: (text: string) => void, size: () => TerminalSize) {
    this.#write = write;
    this.#size = size;
  }

  /** Text that stays; whole lines. */
  print(text: string): void {
    this.#write(`${this.#erase()}${steered(text)}${this.#draw()}`);
  }

  /** The area's lines from now on, each shorter than the terminal is wide. */
  show(lines: readonly string[]): void {
    if (lines.length === this.#lines.length && lines.every((line, at) => line === this.#lines[at])) return;
    this.#lines = lines;
    this.#write(`${this.#erase()}${this.#draw()}`);
  }

  #draw(): string {
    this.#drawn = this.#lines;
    return this.#lines.map(steered).join("\n");
  }

  /** A terminal that became narrower has wrapped what was drawn: it takes more rows now. */
  #erase(): string {
    const { columns } = this.#size();
    const rows = this.#drawn.reduce(
      (sum, line) => sum + Math.max(1, Math.ceil(stringWidth(line) / columns)),
      0,
    );
    this.#drawn = [];
    return rows === 0 ? "" : ERASE_LINE + (UP + ERASE_LINE).repeat(rows - 1);
  }
}
