/** Prints the model's text as it arrives: its answers as plain text or as Markdown block by block, and the beginning of its reasoning. */
import { cutChars } from "../../activities/text/cut.ts";
import { harmless, harmlessLine } from "../console/format.ts";
import { renderMarkdown, type MarkdownOptions } from "../screen/markdown.ts";
import { lastBlockAt } from "../view/markdown.ts";
import type { WordWrap } from "../screen/wrap.ts";
import type { Style } from "../console/output.ts";

export interface AnswerOutput {
  write(text: string): void;
  /** Ends an open line, and prints text that was held back. */
  end(): void;
  /** True within a paragraph, a list or a fence, when no other output is allowed. */
  isOpen(): boolean;
}

/** As much of a line as says what it begins. */
const LINE_CHARS = 100;

/** Only appends, so that the output is the same in a pipe or a log. With `wrap`, breaks lines between words. */
export class PlainAnswer implements AnswerOutput {
  readonly #print: (text: string) => void;
  readonly #wrap: WordWrap | undefined;
  /** The last line is unfinished. */
  #open = false;
  /** Its beginning. */
  #line = "";
  #isFenced = false;
  #isInBlock = false;

  constructor(print: (text: string) => void, wrap?: WordWrap) {
    this.#print = print;
    this.#wrap = wrap;
  }

  write(text: string): void {
    const clean = harmless(text);
    if (clean === "") return;
    const ready = this.#wrap?.push(clean) ?? clean;
    if (ready !== "") this.#print(ready);
    this.#open = !clean.endsWith("\n");
    const lines = (this.#line + clean).split("\n");
    this.#line = cutChars(lines.pop() ?? "", LINE_CHARS);
    for (const line of lines) {
      if (/^\s*(?:```|~~~)/.test(line)) this.#isFenced = !this.#isFenced;
      this.#isInBlock = this.#isFenced || line.trim() !== "";
    }
  }

  end(): void {
    if (this.#open) this.#print(`${this.#wrap?.end() ?? ""}\n`);
    this.#open = false;
    this.#line = "";
    this.#isFenced = false;
    this.#isInBlock = false;
  }

  isOpen(): boolean {
    return this.#open || this.#isInBlock;
  }
}

/** Prints each block once it is complete; until then, `pending` returns it. */
export class MarkdownAnswer implements AnswerOutput {
  readonly #print: (text: string) => void;
  readonly #options: () => MarkdownOptions;
  #text = "";

  constructor(print: (text: string) => void, options: () => MarkdownOptions) {
    this.#print = print;
    this.#options = options;
  }

  write(text: string): void {
    this.#text += text;
    const end = lastBlockAt(this.#text);
    if (end === 0) return;
    this.#show(this.#text.slice(0, end), true);
    this.#text = this.#text.slice(end);
  }

  end(): void {
    this.#show(this.#text, false);
    this.#text = "";
  }

  isOpen(): boolean {
    return this.#text.trim() !== "";
  }

  /** The unfinished block so far. */
  pending(): string[] {
    return this.isOpen() ? renderMarkdown(this.#text, this.#options()).split("\n") : [];
  }

  #show(text: string, goesOn: boolean): void {
    if (text.trim() === "") return;
    const gap = goesOn && (/\n[ \t]*\n$/.test(text) || text.trimStart().startsWith("#")) ? "\n" : "";
    this.#print(`${renderMarkdown(text, this.#options())}\n${gap}`);
  }
}

/** How many characters of the reasoning are shown: its beginning. */
const REASONING_CHARS = 160;

/** One step's text. A pipe or a scrollback cannot be redrawn, so a line reports that an attempt was dropped. */
export class Words {
  readonly #answer: AnswerOutput;
  readonly #line: (text: string) => void;
  readonly #style: Style;
  #shown = "";
  #thought = "";
  #thoughtShown = false;

  /** @param line prints a separate line */
  constructor(answer: AnswerOutput, line: (text: string) => void, style: Style) {
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
    this.#line(this.#style("dim", `thinking: ${harmlessLine(this.#thought, REASONING_CHARS)}`));
  }
}
