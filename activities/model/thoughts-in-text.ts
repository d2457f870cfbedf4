/**
 * Thoughts that a server leaves at the beginning of an answer's text, in the tags of the model's template. Only there: tags that the
 * text quotes later are part of it.
 */

/** Opening and closing, in lower case. Source: templates of DeepSeek, Qwen and GLM; Anthropic's prompts; Seed, Magistral, Kimi and gpt-oss. */
const TAGS = [
  ...["think", "thinking", "thought", "thoughts", "reasoning", "seed:think"].map(
    (name) => [`<${name}>`, `</${name}>`] as const,
  ),
  ["[think]", "[/think]"],
  ["◁think▷", "◁/think▷"],
  ["<|begin_of_thought|>", "<|end_of_thought|>"],
  ["<|channel|>analysis<|message|>", "<|end|>"],
] as const;
const LONGEST_TAG = 30;
/** What OpenAI's open models write between their thoughts and their answer. */
const FINAL = /^\s*(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>/;

export interface Said {
  readonly type: "text" | "reasoning";
  readonly text: string;
}

/** Divides a text while it streams. The whole answer is divided by `splitThoughts`. */
export class LeadingThoughts {
  #held = "";
  #state: "start" | "thoughts" | "text" = "start";
  #close = "";

  /** @returns what the piece adds; text that may be the beginning of a tag is held back */
  take(piece: string): Said[] {
    if (this.#state === "text") return piece === "" ? [] : [{ type: "text", text: piece }];
    this.#held += piece;
    const pieces: Said[] = [];
    while (this.#step(pieces));
    return pieces;
  }

  /** The text has ended. @returns what was held back */
  end(): Said[] {
    const [text, type] = [this.#held, this.#state === "thoughts" ? "reasoning" : "text"] as const;
    this.#held = "";
    return text === "" ? [] : [{ type, text }];
  }

  /** @returns whether more can be said of what is held */
  #step(pieces: Said[]): boolean {
    if (this.#state === "text" || this.#held === "") return false;
    if (this.#state === "start") return this.#begin(pieces);
    const at = this.#held.toLowerCase().indexOf(this.#close);
    const end = at === -1 ? this.#held.length - LONGEST_TAG : at;
    if (end > 0) pieces.push({ type: "reasoning", text: this.#held.slice(0, end) });
    this.#held = this.#held.slice(at === -1 ? Math.max(0, end) : at + this.#close.length);
    if (at !== -1) this.#state = "start";
    return at !== -1;
  }

  #begin(pieces: Said[]): boolean {
    const text = this.#held.trimStart();
    const begins = text.slice(0, LONGEST_TAG).toLowerCase();
    const tags = TAGS.find(([open]) => begins.startsWith(open));
    if (tags !== undefined) {
      this.#held = text.slice(tags[0].length);
      [this.#state, this.#close] = ["thoughts", tags[1]];
      return true;
    }
    if (TAGS.some(([open]) => open.startsWith(begins))) return false;
    this.#state = "text";
    pieces.push({ type: "text", text: this.#held });
    this.#held = "";
    return false;
  }
}

/** @returns the thoughts with which the text begins, even if their opening tag is missing, and the text after them */
export function splitThoughts(text: string): { readonly thoughts: string; readonly text: string } {
  const reader = new LeadingThoughts();
  const pieces = [...reader.take(text), ...reader.end()];
  const of = (type: Said["type"]) =>
    pieces.flatMap((part) => (part.type === type ? [part.text] : [])).join("");
  const [thoughts, rest] = [of("reasoning"), of("text")];
  if (thoughts === "" && rest === text) return withoutOpening(text);
  return { thoughts: thoughts.trim(), text: rest.replace(FINAL, "").trimStart() };
}

/** The template of some models writes the opening tag itself, so that an answer begins with thoughts and has only their end. */
function withoutOpening(text: string): { readonly thoughts: string; readonly text: string } {
  const lower = text.toLowerCase();
  for (const [open, close] of TAGS) {
    const at = lower.indexOf(close);
    if (at === -1 || lower.includes(open) || isQuoted(text, at, close.length)) continue;
    const rest = text.slice(at + close.length);
    return { thoughts: text.slice(0, at).trim(), text: rest.trimStart() };
  }
  return { thoughts: "", text };
}

/** Whether prose or code mentions the tag: within a fence or backticks, or as a word of a sentence. */
function isQuoted(text: string, at: number, length: number): boolean {
  if (isInCode(text, at)) return true;
  const line = text.slice(text.lastIndexOf("\n", at - 1) + 1, at);
  if (/["'“‘(«]$/.test(line)) return true;
  return /\S\s+$/.test(line) && /^(?:[^\S\n]+\S|[.,;:!?)])/.test(text.slice(at + length));
}

/** Whether a place of a text is within a fence or backticks, so that what is there is quoted. */
export function isInCode(text: string, at: number): boolean {
  const before = text.slice(0, at);
  if ((before.match(/^ {0,3}(?:```|~~~)/gm) ?? []).length % 2 === 1) return true;
  const line = before.slice(before.lastIndexOf("\n") + 1);
  return (line.match(/`/g) ?? []).length % 2 === 1;
}
