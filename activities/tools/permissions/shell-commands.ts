/**
 * Splits a shell text into its commands, each as one line of words, so that rules can be matched against them.
 * Programs that only start another one are removed. Pure.
 */
import { forEachChild, parse, type Command, type SyntaxNode, type Word } from "unbash";

/** Marks text that the shell substitutes and that cannot be known beforehand. No shell text contains it. */
export const UNKNOWN = "\0";

export interface ShellCommands {
  /** Program and arguments with one space between them. */
  readonly commands: readonly string[];
  /** False if the text does not show everything that would run. */
  readonly isSure: boolean;
}

/** Nesting depth, such as `sh -c "sh -c …"`. Source: ours; real commands need less. */
const MAX_DEPTH = 8;

export function shellCommands(text: string): ShellCommands {
  const found: Found = { commands: [], isSure: true };
  read(text, found, 0);
  return found;
}

interface Found {
  readonly commands: string[];
  isSure: boolean;
}

function read(text: string, found: Found, depth: number): void {
  if (depth > MAX_DEPTH) {
    found.isSure = false;
    return;
  }
  const visit = (node: SyntaxNode): void => {
    if (node.type === "Script" && "errors" in node && node.errors !== undefined && node.errors.length > 0)
      found.isSure = false;
    if (node.type === "Command") run(wordsOf(node), found, depth);
    forEachChild(node, visit);
  };
  visit(parse(text));
}

const wordsOf = ({ name, args }: Command): string[] =>
  [name, ...args].flatMap((word) => (word?.type === "Word" ? [textOf(word)] : []));

/** A word with the marker in place of each part that the shell substitutes. */
function textOf(word: Word): string {
  return word.parts === undefined ? word.value : word.parts.map(partText).join("");
}

function partText(part: NonNullable<Word["parts"]>[number]): string {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return part.value;
    case "DoubleQuoted":
    case "LocaleString":
      return part.parts.map((inner) => partText(inner)).join("");
    case "Glob":
      return part.text;
    case "ArithmeticExpansion":
    case "BraceExpansion":
    case "CommandExpansion":
    case "ExtendedGlob":
    case "ParameterExpansion":
    case "ProcessSubstitution":
    case "SimpleExpansion":
      return UNKNOWN;
  }
}

interface Wrapper {
  /** The wrapper's options that take a value. */
  readonly values: string;
  /** How many words come before the other program's name. */
  readonly words?: number;
}

/** Programs that start another one. */
const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  sudo: { values: "ughpCrtTUDR" },
  doas: { values: "uC" },
  env: { values: "uC" },
  timeout: { values: "sk", words: 1 },
  nice: { values: "n" },
  ionice: { values: "cnpPu" },
  stdbuf: { values: "ioe" },
  nohup: { values: "" },
  setsid: { values: "" },
  time: { values: "fo" },
  command: { values: "" },
  builtin: { values: "" },
  exec: { values: "a" },
  xargs: { values: "nPILdasE" },
  busybox: { values: "" },
};

const SHELLS = new Set(["sh", "bash", "dash", "ash", "zsh", "ksh", "su"]);
const FIND_STARTS = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

function run(words: readonly string[], found: Found, depth: number): void {
  const [program = "", ...rest] = words;
  if (program === "") return;
  if (depth > MAX_DEPTH) {
    found.isSure = false;
    return;
  }
  found.commands.push(words.join(" "));
  // The text does not show what runs; `[` is a program's name.
  if (program.includes(UNKNOWN) || (/[*?[{]/.test(program) && program !== "[" && program !== "[["))
    found.isSure = false;
  const name = program.slice(program.lastIndexOf("/") + 1);
  const wrapper = Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : undefined;
  if (wrapper !== undefined) return runWrapped({ name, ...wrapper }, rest, found, depth);
  if (SHELLS.has(name)) return runShell(rest, found, depth);
  if (name === "eval") return readSure(rest.join(" "), found, depth);
  if (name === "find") runFound(rest, found, depth);
}

function runWrapped(
  { name, values, words = 0 }: Wrapper & { readonly name: string },
  rest: readonly string[],
  found: Found,
  depth: number,
): void {
  let place = 0;
  for (; place < rest.length; place += 1) {
    const word = rest[place] ?? "";
    if (word === "--") {
      place += 1;
      break;
    }
    if (name === "env" && /^[A-Za-z_]\w*=/.test(word)) continue;
    if (!word.startsWith("-")) {
      if (word.includes(UNKNOWN)) found.isSure = false;
      break;
    }
    // `env -S` splits its own text; whether an unknown option takes a value is not known.
    if (name === "env" && /^(-\w*S|--split-string)/.test(word)) found.isSure = false;
    if (word.startsWith("--") && !word.includes("=") && rest.length > place + 1) {
      // Some long options take the next word, so both readings are examined.
      run(inner(name, rest.slice(place + 2 + words)), found, depth + 1);
    } else if (/^-\w$/.test(word) && values.includes(word.slice(1))) place += 1;
  }
  run(inner(name, rest.slice(place + words)), found, depth + 1);
}

/** `xargs` appends more words. */
const inner = (name: string, words: readonly string[]): readonly string[] =>
  name === "xargs" && words.length > 0 ? [...words, UNKNOWN] : words;

function runShell(rest: readonly string[], found: Found, depth: number): void {
  const place = rest.findIndex((word) => /^-\w*c\w*$/.test(word));
  if (place !== -1) return readSure(rest[place + 1] ?? "", found, depth);
  // The shell reads its commands from an unknown source.
  if (rest.every((word) => word.startsWith("-"))) found.isSure = false;
}

function readSure(text: string, found: Found, depth: number): void {
  if (text.includes(UNKNOWN)) found.isSure = false;
  read(text.replaceAll(UNKNOWN, "x"), found, depth + 1);
}

function runFound(rest: readonly string[], found: Found, depth: number): void {
  for (const [place, word] of rest.entries()) {
    if (!FIND_STARTS.has(word)) continue;
    const end = rest.findIndex((other, index) => index > place && (other === ";" || other === "+"));
    run(rest.slice(place + 1, end === -1 ? rest.length : end), found, depth + 1);
  }
}
