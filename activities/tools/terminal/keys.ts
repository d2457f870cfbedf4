/** What a terminal sends for a key, by its name. */

/** Names without modifiers, and what they send. Source: the terminal description xterm-256color. */
const PLAIN: Readonly<Record<string, string>> = {
  enter: "\r",
  tab: "\t",
  escape: "\u001b",
  space: " ",
  backspace: "\u007f",
};

/** Keys that are sent as `ESC [ LETTER`, with modifiers as `ESC [ 1 ; NUMBER LETTER`. */
const LETTERED: Readonly<Record<string, string>> = {
  up: "A",
  down: "B",
  right: "C",
  left: "D",
  home: "H",
  end: "F",
  f1: "P",
  f2: "Q",
  f3: "R",
  f4: "S",
};

/** Keys that are sent as `ESC [ NUMBER ~`. */
const NUMBERED: Readonly<Record<string, number>> = {
  insert: 2,
  delete: 3,
  pageup: 5,
  pagedown: 6,
  f5: 15,
  f6: 17,
  f7: 18,
  f8: 19,
  f9: 20,
  f10: 21,
  f11: 23,
  f12: 24,
};

const OTHER_NAMES: Readonly<Record<string, string>> = {
  return: "enter",
  cr: "enter",
  esc: "escape",
  bs: "backspace",
  del: "delete",
  ins: "insert",
  pgup: "pageup",
  pgdn: "pagedown",
  pgdown: "pagedown",
  spacebar: "space",
};

/** Number of each modifier in a sequence: their sum, plus 1. */
const MODIFIERS: Readonly<Record<string, number>> = {
  shift: 1,
  s: 1,
  alt: 2,
  meta: 2,
  m: 2,
  option: 2,
  ctrl: 4,
  control: 4,
  c: 4,
};
const SHIFT = 1;
const ALT = 2;
const CTRL = 4;

interface Key {
  readonly name: string;
  readonly modifiers: number;
}

/**
 * The names in what a model writes: `ctrl+c`, and as others write it (`C-c`, `^C`, `<Ctrl-C>`, `ArrowUp`, `Page Down`); several in
 * one text, with blanks or commas between them.
 */
function namesIn(written: string): string[] {
  if (written.length === 1) return [written];
  const joined = written.trim().replace(/\bpage[ _-]?(up|down)\b/gi, "page$1");
  return joined.split(/[\s,]+/).filter((name) => name !== "");
}

const isCharacter = (text: string): boolean => /^.$/su.test(text);

function readKey(written: string): Key {
  const bare = /^<.+>$/.test(written) ? written.slice(1, -1) : written;
  if (/^\^.$/.test(bare)) return { name: bare.slice(1).toLowerCase(), modifiers: CTRL };
  const parts = bare.split(/[+-](?=.)/);
  const last = parts.pop() ?? "";
  let modifiers = 0;
  for (const part of parts) {
    const modifier = MODIFIERS[part.toLowerCase()];
    if (modifier === undefined) return { name: bare, modifiers: 0 };
    modifiers |= modifier;
  }
  if (isCharacter(last)) return { name: modifiers & CTRL ? last.toLowerCase() : last, modifiers };
  const name = last
    .toLowerCase()
    .replace(/^arrow[ _-]?/, "")
    .replace(/^key[ _-]?/, "");
  return { name: (Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : undefined) ?? name, modifiers };
}

/** What is sent; undefined if there is no such key. @param appKeys see `Screen` */
function sequenceOf({ name, modifiers }: Key, appKeys: boolean): string | undefined {
  const letter = Object.hasOwn(LETTERED, name) ? LETTERED[name] : undefined;
  if (letter !== undefined) {
    if (modifiers !== 0) return `\u001b[1;${modifiers + 1}${letter}`;
    return `\u001b${appKeys || /^f\d/.test(name) ? "O" : "["}${letter}`;
  }
  const number = Object.hasOwn(NUMBERED, name) ? NUMBERED[name] : undefined;
  if (number !== undefined) return `\u001b[${number}${modifiers === 0 ? "" : `;${modifiers + 1}`}~`;
  if (name === "tab" && modifiers === SHIFT) return "\u001b[Z";
  const plain = Object.hasOwn(PLAIN, name) ? PLAIN[name] : undefined;
  const char = plain ?? (isCharacter(name) ? name : undefined);
  if (char === undefined) return undefined;
  const shifted = modifiers & SHIFT && plain === undefined ? char.toUpperCase() : char;
  const base = modifiers & CTRL ? controlOf(shifted) : shifted;
  return base === undefined ? undefined : (modifiers & ALT ? "\u001b" : "") + base;
}

/** Ctrl with a character: letters, and `@ [ \ ] ^ _ ?` and the blank. */
function controlOf(char: string): string | undefined {
  if (char === " ") return "\u0000";
  if (char === "?") return "\u007f";
  if (char === "\r" || char === "\t" || char === "\u001b" || char === "\u007f") return char;
  const code = char.toUpperCase().charCodeAt(0);
  return code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : undefined;
}

/** What to type for the keys; or the first name that is none. @param appKeys whether the program wants arrow keys otherwise */
export function typedKeys(
  keys: readonly string[],
  appKeys: boolean,
): { readonly text: string } | { readonly unknown: string } {
  let text = "";
  for (const written of keys.flatMap(namesIn)) {
    const sequence = sequenceOf(readKey(written), appKeys);
    if (sequence === undefined) return { unknown: written };
    text += sequence;
  }
  return { text };
}

/** A text as it is typed or pasted: each line's end is the Enter key. */
export const typedText = (text: string): string => text.replace(/\r\n|\n/g, "\r");

export const KEY_NAMES =
  "ctrl+c (any letter), alt+x, shift+tab, enter, tab, escape, space, backspace, delete, insert, up, down, left, right, home, end, pageup, pagedown, f1 to f12, or one character";
