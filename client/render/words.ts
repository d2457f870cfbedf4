/**
 * The model's text as it arrives. A pipe or a scrollback cannot be redrawn: if an attempt is
 * dropped, a line says so.
 */
import type { Style } from "../console/output.ts";
import { oneLine } from "../console/format.ts";
import type { Answer } from "./answers.ts";

/** Characters of reasoning to show: its first thought. */
const REASONING_CHARS = 160;

export class Words {
  readonly #answer: Answer;
  readonly #line: (text: string) => void;
  readonly #style: Style;
  #shown = "";
  #thought = "";
  #thoughtShown = false;

  /** @param line prints a line of its own */
  constructor(answer: Answer, line: (text: string) => void, style: Style) {
    this.#answer = answer;
    this.#line = line;
    this.#style = style;
  }

  text(delta: string): void {
    this.#showThought();
    // Blank lines before the first word would only push the answer down.
    const fresh = this.#shown === "" ? delta.trimStart() : delta;
    this.#shown += fresh;
    this.#answer.write(fresh);
  }

  reasoning(delta: string): void {
    this.#thought += delta;
    if (this.#thought.length > REASONING_CHARS) this.#showThought();
  }

  /** The whole answer: prints what was not shown yet. */
  whole(text: string, reasoning: string): void {
    this.#thought = reasoning;
    this.#showThought();
    const full = text.trimStart();
    if (full.startsWith(this.#shown)) this.text(full.slice(this.#shown.length));
    else if (full !== "") {
      this.pause();
      this.#shown = "";
      this.text(full);
    }
    this.pause();
  }

  pause(): void {
    this.#answer.end();
  }

  isOpen(): boolean {
    return this.#answer.isOpen();
  }

  /** A new step or attempt begins. Returns whether the previous text is now void. */
  reset(): boolean {
    this.pause();
    const had = this.#shown !== "" || this.#thoughtShown;
    this.#shown = "";
    this.#thought = "";
    this.#thoughtShown = false;
    return had;
  }

  #showThought(): void {
    if (this.#thoughtShown || this.#thought.trim() === "") return;
    this.#thoughtShown = true;
    this.pause();
    this.#line(this.#style("dim", `thinking: ${oneLine(this.#thought, REASONING_CHARS)}`));
  }
}
