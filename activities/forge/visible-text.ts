/**
 * What people see of a comment on a forge. What they cannot see, and what only stands in addresses, code and quotations, is no place for
 * an order: somebody else may have put it there. Each part is found in one scan from the top, as each may contain another's beginning.
 */
import { withoutHidden } from "../text/clean.ts";
import { cutChars } from "../text/cut.ts";

/** More of a comment is not read: it bounds the scan. Chosen: some pages. */
const MAX_CHARS = 20_000;

/** In front of a block: quotations and lists, one in the other. */
const PREFIX = /^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t][ \t>]*)*/;
const PARTS = [
  // Up to its end, or the text's.
  /(?<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*(?:\n[^]*?(?:^[ \t>]*\k<fence>[`~]*[ \t]*$|(?![^]))|(?![^]))/,
  // It ends with its paragraph.
  /(?<code>(?<![`\\])(?<ticks>`+)(?!`)(?:(?!\n[ \t>]*\n)[^])*?(?<!`)\k<ticks>(?!`))/,
  /(?<unseen><!--(?:-?>|[^]*?(?:-->|(?![^])))|<\?[^]*?(?:\?>|(?![^]))|<![a-z[][^]*?(?:>|(?![^])))/,
  /(?<unshown><(?<raw>script|style|template|textarea|title|noscript|iframe|noembed|noframes|xmp|plaintext)\b[^]*?(?:<\/\k<raw>\s*>|(?![^])))/,
  /(?<link><[a-z][a-z\d+.-]{1,31}:[^\s<>]*>)/,
  /<(?<tag>\/?[a-z][a-z\d-]*)(?:\s(?:[^<>"']|"[^"]{0,2000}"|'[^']{0,2000}')*)?\/?>/,
  /!\[(?<alt>[^\]\n]{0,1000})\](?:\((?<image>[^)\s]{0,2000})[^)\n]{0,1000}\)|\[[^\]\n]{0,200}\])?/,
  /\]\((?<address>[^)\s]{0,2000})(?:\s+(?:"[^"\n]{0,1000}"|'[^'\n]{0,1000}'|\([^)\n]{0,1000}\)))?\s*\)/,
  /^ {0,3}\[(?<label>[^\]\n]{1,200})\]:[ \t]*(?<target>[^\n]*)(?:\n[ \t]+(?:"[^"\n]*"|'[^'\n]*'|\([^)\n]*\))[ \t]*$)?/,
];
const PART = new RegExp(PREFIX.source + PARTS.map(({ source }) => source).join("|"), "gimu");

type Groups = Readonly<Record<string, string | undefined>>;

/** A reference that nothing uses is not shown; a footnote that is used is shown as a whole. */
function definition(lowerCased: string, { label = "", target = "" }: Groups): string {
  const name = `[${label}]`.toLowerCase();
  if (lowerCased.indexOf(name) === lowerCased.lastIndexOf(name)) return "";
  return label.startsWith("^")
    ? `[${label}]: ${target}`
    : `[${label}]: ${target.trim().split(/\s/)[0] ?? ""}`;
}

/**
 * The text without what nobody sees: HTML comments, hidden and reordering characters, attributes of tags, texts behind images, titles
 * of links, references that nothing uses. Code stays as it is.
 */
export function visibleText(text: string): string {
  const seeable = withoutHidden(cutChars(text.replaceAll(/\r\n?/g, "\n"), MAX_CHARS));
  const lowerCased = seeable.toLowerCase();
  return seeable.replace(PART, (part: string, ...rest: unknown[]) => {
    const groups = rest.at(-1) as Groups;
    const { fence, code, unseen, unshown = unseen, link, tag, alt, image, address, label } = groups;
    if (fence !== undefined || code !== undefined || link !== undefined) return part;
    // A blank, so that what is around it makes nothing new.
    if (unshown !== undefined) return " ";
    if (tag !== undefined) return `<${tag}>`;
    if (alt !== undefined) return `![](${image ?? ""})`;
    if (address !== undefined) return `](${address})`;
    return label === undefined ? part : definition(lowerCased, groups);
  });
}

/** Elements whose text is code, or somebody else's. */
const QUOTING = /<(pre|code|blockquote|q|samp|kbd)>[^]*?(?:<\/\1>|(?![^]))/gi;
/** From here on, a mail answers to what is below. */
const MAIL = /^(?:On [^\n]{1,300}(?:\n[^\n]{1,300})?\bwrote:|-{2,} ?Original Message ?-{2,}|_{10,})[ \t]*$/im;
const QUOTE = /^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*>/;

/**
 * What a person says in a visible text with their own words: neither code, nor a quotation, nor an address, nor what a mail answers to.
 * @param visible by `visibleText`
 */
export function spokenText(visible: string): string {
  const prose = visible
    .replace(PART, (part: string, ...rest: unknown[]) => {
      const { fence, code, link, tag, alt, address, label } = rest.at(-1) as Groups;
      if (tag !== undefined) return part;
      // A code block ends what is before it; a code span is a word of its line.
      if (fence !== undefined || label !== undefined) return "\n\n";
      if (code !== undefined || link !== undefined || alt !== undefined) return "\u00b7";
      return address === undefined ? part : "]";
    })
    .replace(QUOTING, "\u00b7")
    .replaceAll(/\b[a-z][a-z\d+.-]{1,31}:\/\/\S+/gi, "\u00b7");
  return own(prose.split(MAIL)[0] ?? "");
}

/** Without quotations, whose last paragraph goes on until an empty line, and without code that is only indented. */
function own(text: string): string {
  const ownLines: string[] = [];
  let [isQuoted, isAfterBlank, isIndented] = [false, true, false];
  for (const line of text.split("\n")) {
    const isBlank = line.trim() === "";
    isQuoted = !isBlank && (isQuoted || QUOTE.test(line));
    isIndented = /^(?: {4}| {0,3}\t)/.test(line) && (isAfterBlank || isIndented);
    if (!isQuoted && !isIndented) ownLines.push(line);
    isAfterBlank = isBlank;
  }
  return ownLines.join("\n");
}
