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
  const result: Found = { commands: [], others: [], isSure: true, leftChars: 6 * MAX_CHARS };
  read(text, result, 0);
  return result;
}

interface Found {
  readonly commands: string[];
  readonly others: (readonly string[])[];
  isSure: boolean;
  /** Characters of texts and commands that may still be looked at. */
  leftChars: number;
}

function read(text: string, result: Found, depth: number): void {
  result.leftChars -= text.length;
  const parentheses = text.match(/[(`]/g)?.length ?? 0;
  if (depth > MAX_DEPTH || text.length > MAX_CHARS || result.leftChars < 0 || parentheses > MAX_PARENTHESES) {
    result.isSure = false;
    return;
  }
  const visit = (node: SyntaxNode): void => {
    if (node.type === "Script" && "errors" in node && node.errors !== undefined && node.errors.length > 0)
      result.isSure = false;
    if (node.type === "Command") run(wordsOf(node), result, depth);
    forEachChild(node, visit);
  };
  try {
    visit(parse(text));
  } catch (error) {
    // Its nesting is too deep for the stack.
    if (!(error instanceof RangeError)) throw error;
    result.isSure = false;
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
  readonly operands?: number;
  /** `NAME=value` may come before it. */
  readonly takesVariables?: true;
}

/** Programs that start another one. */
const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  sudo: { values: "ughpCrtTUDR", takesVariables: true },
  doas: { values: "uC", takesVariables: true },
  env: { values: "uC", takesVariables: true },
  timeout: { values: "sk", operands: 1 },
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
  chroot: { values: "", operands: 1 },
  chrt: { values: "TPD", operands: 1 },
  coproc: { values: "" },
  entr: { values: "" },
  fakeroot: { values: "lsib" },
  flock: { values: "wE", operands: 1 },
  gosu: { values: "", operands: 1 },
  ltrace: { values: "aDeFlnopsuwxX" },
  nsenter: { values: "tSG" },
  parallel: { values: "jSN" },
  prlimit: { values: "p" },
  runuser: { values: "ugGs" },
  script: { values: "oOIBTE" },
  setpriv: { values: "" },
  strace: { values: "abeEIoOpPsSuUX" },
  "su-exec": { values: "", operands: 1 },
  "systemd-run": { values: "pEHMt" },
  taskset: { values: "", operands: 1 },
  unbuffer: { values: "" },
  unshare: { values: "SGRw" },
  watch: { values: "nq" },
  "xvfb-run": { values: "efnps" },
};

const SHELLS = new Set(["sh", "bash", "dash", "ash", "zsh", "ksh", "su"]);
const FIND_STARTS = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

function run(argv: readonly string[], result: Found, depth: number): void {
  const [program = "", ...rest] = argv;
  if (program === "") return;
  const command = argv.join(" ");
  result.leftChars -= command.length;
  if (depth > MAX_DEPTH || result.commands.length >= MAX_COMMANDS || result.leftChars < 0) {
    result.isSure = false;
    return;
  }
  const alternatives = othersOf(program, rest);
  result.leftChars -= alternatives.join("").length;
  result.commands.push(command);
  result.others.push(alternatives);
  // The text does not show what runs; `[` is a program's name.
  if (program.includes(UNKNOWN) || (/[*?[{]/.test(program) && program !== "[" && program !== "[["))
    result.isSure = false;
  const name = program.slice(program.lastIndexOf("/") + 1);
  const wrapper = Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : undefined;
  if (wrapper !== undefined) return runWrapped({ name, ...wrapper }, rest, result, depth);
  if (SHELLS.has(name)) return runShell(name, rest, result, depth);
  if (name === "trap") return readSure(rest.find((word) => !word.startsWith("-")) ?? "", result, depth);
  if (name === "eval") return readSure(rest.join(" "), result, depth);
  if (name === "find") runFound(rest, result, depth);
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
  args: readonly string[],
  takes: (option: string) => boolean | "unknown",
): readonly number[] {
  const reached = new Set([0]);
  const indices: number[] = [];
  for (const index of reached) {
    const word = args[index];
    if (word === undefined || index > 2 * MAX_OPTIONS) continue;
    if (word === "--") indices.push(index + 1);
    else if (!word.startsWith("-") || word === "-") indices.push(index);
    else {
      const takesNext = word.startsWith("--") && word.includes("=") ? false : takes(word);
      if (takesNext !== true) reached.add(index + 1);
      if (takesNext !== false) reached.add(index + 2);
    }
  }
  return indices.filter((index) => index < args.length);
}

function runWrapped(
  { name, values, operands = 0, takesVariables }: Wrapper & { readonly name: string },
  rest: readonly string[],
  result: Found,
  depth: number,
): void {
  // `env -S` splits its own text; whether an unknown option takes a value is not known.
  if (name === "env" && rest.some((word) => /^(-\w*S|--split-string)/.test(word))) result.isSure = false;
  const option = rest.findIndex((word) => /^(-\w*c|--command)$/.test(word));
  if (WITH_TEXTS.has(name) && option !== -1) readSure(rest[option + 1] ?? "", result, depth);
  const starts = afterOptions(rest, (word) => {
    if (word.startsWith("--")) return "unknown";
    return /^-\w$/.test(word) && values.includes(word.slice(1));
  });
  if (rest.length > 2 * MAX_OPTIONS && starts.length === 0) result.isSure = false;
  for (const index of starts) {
    let start = index;
    while (takesVariables && /^[A-Za-z_]\w*=/.test(rest[start] ?? "")) start += 1;
    if (rest[start]?.includes(UNKNOWN) === true) result.isSure = false;
    run(inner(name, rest.slice(start + operands)), result, depth + 1);
  }
}

/** Programs that also take a whole command as one text. */
const WITH_TEXTS = new Set(["flock", "runuser", "script"]);

/** `xargs` appends more words. */
const inner = (name: string, args: readonly string[]): readonly string[] =>
  name === "xargs" && args.length > 0 ? [...args, UNKNOWN] : args;

/** The options of shells that take the next word: `-o NAME`, `--rcfile FILE`; and whether one says that a text follows. */
function runShell(name: string, rest: readonly string[], result: Found, depth: number): void {
  const isText = (word: string) => /^-\w*c\w*$/.test(word) || word === "--command";
  if (name === "su") {
    const index = rest.findIndex(isText);
    const joined = rest.find((word) => word.startsWith("--command="));
    return readSure(joined?.slice("--command=".length) ?? rest[index + 1] ?? UNKNOWN, result, depth);
  }
  let takesText = false;
  let firstOperand = 0;
  for (; firstOperand < rest.length && /^[-+]./.test(rest[firstOperand] ?? ""); firstOperand += 1) {
    const word = rest[firstOperand] ?? "";
    if (word === "--") {
      firstOperand += 1;
      break;
    }
    takesText ||= isText(word);
    if (/^(--rcfile|--init-file)$/.test(word)) firstOperand += 1;
    else if (!word.startsWith("--")) firstOperand += word.match(/o/gi)?.length ?? 0;
  }
  if (takesText) return readSure(rest[firstOperand] ?? "", result, depth);
  // The shell reads its commands from an unknown source.
  if (firstOperand >= rest.length || rest[firstOperand] === "-") result.isSure = false;
}

function readSure(text: string, result: Found, depth: number): void {
  if (text.includes(UNKNOWN)) result.isSure = false;
  read(text.replaceAll(UNKNOWN, "x"), result, depth + 1);
}

function runFound(rest: readonly string[], result: Found, depth: number): void {
  for (const [position, word] of rest.entries()) {
    if (!FIND_STARTS.has(word)) continue;
    const end = rest.findIndex((other, index) => index > position && (other === ";" || other === "+"));
    run(rest.slice(position + 1, end === -1 ? rest.length : end), result, depth + 1);
  }
}
