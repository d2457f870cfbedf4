/** The last lines of a terminal, redrawn below the permanent output. */
import stringWidth from "string-width";
import { steered } from "../console/format.ts";
import type { TerminalSize } from "../console/output.ts";

const ERASE_LINE = "\r\u001b[2K";
const UP = "\u001b[1A";

/** Permanent output goes above the area. Each change is a single write, so that nothing flickers. */
export class LiveArea {
  readonly #write: (text: string) => void;
  readonly #size: () => TerminalSize;
  #lines: readonly string[] = [];
  #drawn: readonly string[] = [];

  /** @param write receives escape sequences unchanged; texts are cleaned here */
  constructor(write: (text: string) => void, size: () => TerminalSize) {
    this.#write = write;
    this.#size = size;
  }

  /** Prints permanent text, in whole lines. */
  print(text: string): void {
    this.#write(`${this.#erase()}${steered(text)}${this.#draw()}`);
  }

  /** Sets the area's lines, each shorter than the terminal's width. */
  show(lines: readonly string[]): void {
    if (lines.length === this.#lines.length && lines.every((line, at) => line === this.#lines[at])) return;
    this.#lines = lines;
    this.#write(`${this.#erase()}${this.#draw()}`);
  }

  #draw(): string {
    this.#drawn = this.#lines;
    return this.#lines.map(steered).join("\n");
  }

  /** If the terminal has become narrower, it has wrapped the drawn lines, which now take more rows. */
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
