/**
 * The model's words as they come. A stream that cannot be taken back (a pipe, a scrollback) is only ever added to:
 * where an attempt is dropped, that is said instead of redrawn.
 */
import type { Style } from "../console/output.ts";
import { harmless, oneLine } from "../console/format.ts";

/** Characters of reasoning that are worth showing: its first thought. */
const REASONING_CHARS = 160;

export interface Words {
  readonly text: (delta: string) => void;
  readonly reasoning: (delta: string) => void;
  /**
   * The whole answer: what was not shown yet is added.
   * @returns true if all of it has been shown as it came
   */
  readonly whole: (text: string, reasoning: string) => boolean;
  /** Something else is to be printed: ends an open line. */
  readonly pause: () => void;
  /** A new step or attempt begins. Returns whether words of the one before are now void. */
  readonly reset: () => boolean;
}

export function createWords(write: (text: string) => void, style: Style): Words {
  let shown = "";
  let lineOpen = false;
  let thought = "";
  let thoughtShown = false;

  const print = (text: string) => {
    if (text === "") return;
    write(text);
    lineOpen = !text.endsWith("\n");
  };
  const pause = () => {
    if (lineOpen) print("\n");
  };
  const showThought = () => {
    if (thoughtShown || thought.trim() === "") return;
    thoughtShown = true;
    pause();
    print(`${style("dim", `thinking: ${oneLine(thought, REASONING_CHARS)}`)}\n`);
  };
  const text = (delta: string) => {
    showThought();
    // Blank lines before the first word would only push the answer down.
    const fresh = shown === "" ? delta.trimStart() : delta;
    shown += fresh;
    print(harmless(fresh));
  };
  return {
    text,
    reasoning: (delta) => {
      thought += delta;
      if (thought.length > REASONING_CHARS) showThought();
    },
    whole: (answer, reasoning) => {
      thought = reasoning;
      showThought();
      const live = shown !== "";
      const full = answer.trimStart();
      if (full.startsWith(shown)) text(full.slice(shown.length));
      else if (full !== "") {
        pause();
        shown = "";
        text(full);
      }
      pause();
      return live;
    },
    pause,
    reset: () => {
      pause();
      const had = shown !== "" || thoughtShown;
      shown = "";
      thought = "";
      thoughtShown = false;
      return had;
    },
  };
}
