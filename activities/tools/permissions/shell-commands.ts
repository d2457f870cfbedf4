/**
 * Splits a shell text into its commands, each as one line of words, so that rules can be matched against them.
 * Programs that only start another one are removed.
 */
import { forEachChild, parse, type Command, type SyntaxNode, type Word } from "unbash";

/** Marks text that the shell substitutes and that cannot be known beforehand. No shell text contains it. */
export const UNKNOWN = "\0";

export interface ShellCommands {
  /** Program and arguments with one space between them. */
  readonly commands: readonly string[];
  /** For each of them: the same without its folder, and without options in front of its verb (`git -c a=b push`). */
  readonly others: readonly (readonly string[])[];
  /** False if the text does not show everything that would run. */
  readonly isSure: boolean;
}

/** Nesting depth, such as `sh -c "sh -c …"`. Chosen: real commands need less. */
const MAX_DEPTH = 8;
/** A longer text is not read, and more commands neither: it is not sure what runs. Chosen: it takes some 20 ms. */
const MAX_CHARS = 60_000;
const MAX_COMMANDS = 10_000;
/** More parentheses would take the parser quadratic time. */
const MAX_PARENTHESES = 500;
/** Options in front of a verb. */
const MAX_OPTIONS = 12;

/** Time is bounded, whatever the text. */
export function shellCommands(text: string): ShellCommands {
  const found: Found = { commands: [], others: [], isSure: true, leftChars: 6 * MAX_CHARS };
  read(text, found, 0);
  return found;
}

interface Found {
  readonly commands: string[];
  readonly others: (readonly string[])[];
  isSure: boolean;
  /** Characters of texts and commands that may still be looked at. */
  leftChars: number;
}

function read(text: string, found: Found, depth: number): void {
  found.leftChars -= text.length;
  const parentheses = text.match(/[(`]/g)?.length ?? 0;
  if (depth > MAX_DEPTH || text.length > MAX_CHARS || found.leftChars < 0 || parentheses > MAX_PARENTHESES) {
    found.isSure = false;
    return;
  }
  const visit = (node: SyntaxNode): void => {
    if (node.type === "Script" && "errors" in node && node.errors !== undefined && node.errors.length > 0)
      found.isSure = false;
    if (node.type === "Command") run(wordsOf(node), found, depth);
    forEachChild(node, visit);
  };
  try {
    visit(parse(text));
  } catch (error) {
    // Its nesting is too deep for the stack.
    if (!(error instanceof RangeError)) throw error;
    found.isSure = false;
  }
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
  /** `NAME=value` may come before it. */
  readonly takesVariables?: true;
}

/** Programs that start another one. */
const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  sudo: { values: "ughpCrtTUDR", takesVariables: true },
  doas: { values: "uC", takesVariables: true },
  env: { values: "uC", takesVariables: true },
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
  chroot: { values: "", words: 1 },
  chrt: { values: "TPD", words: 1 },
  coproc: { values: "" },
  entr: { values: "" },
  fakeroot: { values: "lsib" },
  flock: { values: "wE", words: 1 },
  gosu: { values: "", words: 1 },
  ltrace: { values: "aDeFlnopsuwxX" },
  nsenter: { values: "tSG" },
  parallel: { values: "jSN" },
  prlimit: { values: "p" },
  runuser: { values: "ugGs" },
  script: { values: "oOIBTE" },
  setpriv: { values: "" },
  strace: { values: "abeEIoOpPsSuUX" },
  "su-exec": { values: "", words: 1 },
  "systemd-run": { values: "pEHMt" },
  taskset: { values: "", words: 1 },
  unbuffer: { values: "" },
  unshare: { values: "SGRw" },
  watch: { values: "nq" },
  "xvfb-run": { values: "efnps" },
};

const SHELLS = new Set(["sh", "bash", "dash", "ash", "zsh", "ksh", "su"]);
const FIND_STARTS = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

function run(words: readonly string[], found: Found, depth: number): void {
  const [program = "", ...rest] = words;
  if (program === "") return;
  const command = words.join(" ");
  found.leftChars -= command.length;
  if (depth > MAX_DEPTH || found.commands.length >= MAX_COMMANDS || found.leftChars < 0) {
    found.isSure = false;
    return;
  }
  const others = othersOf(program, rest);
  found.leftChars -= others.join("").length;
  found.commands.push(command);
  found.others.push(others);
  // The text does not show what runs; `[` is a program's name.
  if (program.includes(UNKNOWN) || (/[*?[{]/.test(program) && program !== "[" && program !== "[["))
    found.isSure = false;
  const name = program.slice(program.lastIndexOf("/") + 1);
  const wrapper = Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : undefined;
  if (wrapper !== undefined) return runWrapped({ name, ...wrapper }, rest, found, depth);
  if (SHELLS.has(name)) return runShell(name, rest, found, depth);
  if (name === "trap") return readSure(rest.find((word) => !word.startsWith("-")) ?? "", found, depth);
  if (name === "eval") return readSure(rest.join(" "), found, depth);
  if (name === "find") runFound(rest, found, depth);
}

/** Without its folder, and without the options in front of each word that may be its verb. */
function othersOf(program: string, rest: readonly string[]): string[] {
  const name = program.slice(program.lastIndexOf("/") + 1);
  const verbs = afterOptions(rest, () => "unknown").filter((index) => index > 0);
  return [
    ...(name === program || name === "" ? [] : [[name, ...rest].join(" ")]),
    ...verbs.map((index) => [name, ...rest.slice(index)].join(" ")),
  ];
}

/**
 * The places of the words that may be the first one that is neither an option nor the value of one.
 * @param takes whether an option takes the next word: if that is not known, both readings count
 */
function afterOptions(
  words: readonly string[],
  takes: (option: string) => boolean | "unknown",
): readonly number[] {
  const reached = new Set([0]);
  const found: number[] = [];
  for (const index of reached) {
    const word = words[index];
    if (word === undefined || index > 2 * MAX_OPTIONS) continue;
    if (word === "--") found.push(index + 1);
    else if (!word.startsWith("-") || word === "-") found.push(index);
    else {
      const takesNext = word.startsWith("--") && word.includes("=") ? false : takes(word);
      if (takesNext !== true) reached.add(index + 1);
      if (takesNext !== false) reached.add(index + 2);
    }
  }
  return found.filter((index) => index < words.length);
}

function runWrapped(
  { name, values, words = 0, takesVariables }: Wrapper & { readonly name: string },
  rest: readonly string[],
  found: Found,
  depth: number,
): void {
  // `env -S` splits its own text; whether an unknown option takes a value is not known.
  if (name === "env" && rest.some((word) => /^(-\w*S|--split-string)/.test(word))) found.isSure = false;
  const option = rest.findIndex((word) => /^(-\w*c|--command)$/.test(word));
  if (WITH_TEXTS.has(name) && option !== -1) readSure(rest[option + 1] ?? "", found, depth);
  const places = afterOptions(rest, (word) => {
    if (word.startsWith("--")) return "unknown";
    return /^-\w$/.test(word) && values.includes(word.slice(1));
  });
  if (rest.length > 2 * MAX_OPTIONS && places.length === 0) found.isSure = false;
  for (const index of places) {
    let start = index;
    while (takesVariables && /^[A-Za-z_]\w*=/.test(rest[start] ?? "")) start += 1;
    if (rest[start]?.includes(UNKNOWN) === true) found.isSure = false;
    run(inner(name, rest.slice(start + words)), found, depth + 1);
  }
}

/** Programs that also take a whole command as one text. */
const WITH_TEXTS = new Set(["flock", "runuser", "script"]);

/** `xargs` appends more words. */
const inner = (name: string, words: readonly string[]): readonly string[] =>
  name === "xargs" && words.length > 0 ? [...words, UNKNOWN] : words;

/** The options of shells that take the next word: `-o NAME`, `--rcfile FILE`; and whether one says that a text follows. */
function runShell(name: string, rest: readonly string[], found: Found, depth: number): void {
  const isText = (word: string) => /^-\w*c\w*$/.test(word) || word === "--command";
  if (name === "su") {
    const index = rest.findIndex(isText);
    const joined = rest.find((word) => word.startsWith("--command="));
    return readSure(joined?.slice("--command=".length) ?? rest[index + 1] ?? UNKNOWN, found, depth);
  }
  let takesText = false;
  let place = 0;
  for (; place < rest.length && /^[-+]./.test(rest[place] ?? ""); place += 1) {
    const word = rest[place] ?? "";
    if (word === "--") {
      place += 1;
      break;
    }
    takesText ||= isText(word);
    if (/^(--rcfile|--init-file)$/.test(word)) place += 1;
    else if (!word.startsWith("--")) place += word.match(/o/gi)?.length ?? 0;
  }
  if (takesText) return readSure(rest[place] ?? "", found, depth);
  // The shell reads its commands from an unknown source.
  if (place >= rest.length || rest[place] === "-") found.isSure = false;
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
