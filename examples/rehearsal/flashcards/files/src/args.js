// Command line arguments: words, and options as --name value, --name=value or --flag.

/** What is wrong with how a command was called; `usage` tells the right way. */
export class UsageError extends Error {
  name = "UsageError";
}

/**
 * @param options names of the options and whether each takes a value: {deck: "value", force: "flag"}
 * @returns {{words: string[], options: Record<string, string | true>}}
 */
export function parseArgs(argv, options) {
  const words = [];
  const found = {};
  for (let at = 0; at < argv.length; at++) {
    const arg = argv[at];
    if (arg === "--") return { words: [...words, ...argv.slice(at + 1)], options: found };
    if (!arg.startsWith("--")) {
      words.push(arg);
      continue;
    }
    const [name, inline] = splitOnce(arg.slice(2), "=");
    if (!Object.hasOwn(options, name)) throw new UsageError(`There is no option --${name} here.`);
    if (options[name] === "flag") {
      found[name] = true;
    } else {
      const value = inline ?? argv[++at];
      if (value === undefined) throw new UsageError(`The option --${name} needs a value.`);
      found[name] = value;
    }
  }
  return { words, options: found };
}

/** A whole number in bounds. @throws UsageError */
export function wholeNumber(text, name, lowest = 1) {
  const value = Number(text);
  if (!Number.isInteger(value) || value < lowest) {
    throw new UsageError(`${name} is a whole number from ${lowest} on, not "${text}".`);
  }
  return value;
}

function splitOnce(text, separator) {
  const at = text.indexOf(separator);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
