/**
 * Prints the model's text as it arrives. A pipe or a scrollback cannot be redrawn, so a line
 * reports that an attempt was dropped.
 */
import type { Style } from "../console/output.ts";
import { oneLine } from "../console/format.ts";
import type { Answer } from "./answers.ts";

/** How many characters of the reasoning are shown: its beginning. */
const REASONING_CHARS = 160;

export class Words {
  readonly #answer: Answer;
  readonly #line: (text: string) => void;
  readonly #style: Style;
  #shown = "";
  #thought = "";
  #thoughtShown = false;

  /** @param line prints a separate line */
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

  /** Receives the whole answer, and prints the part that has not been shown yet. */
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

  /** Called when a new step or attempt begins. Returns whether the previous text is now void. */
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
