/** Markdown for terminals: headings, lists, code, tables, emphasis. Pure; unknown syntax is unchanged. */
import { lexer, type MarkedToken, type Token, type Tokens } from "marked";
import stringWidth from "string-width";
import type { Style } from "../console/output.ts";
import { harmless } from "../console/format.ts";
import { fitted, wrapped } from "./wrap.ts";

export interface MarkdownOptions {
  readonly style: Style;
  readonly columns: number;
}

/** Longer lines of prose are hard to read. Source: Bringhurst, 45 to 75 characters; code and lists need more. */
const PROSE_COLUMNS = 100;

/** @returns whole lines, without a line end after the last */
export function renderMarkdown(text: string, { style, columns }: MarkdownOptions): string {
  return blocks(lexer(harmless(text)), { style, columns: Math.min(columns, PROSE_COLUMNS) }).join("\n");
}

/** Where the last block of a growing text begins: everything before it is complete. */
export function lastBlockAt(text: string): number {
  const tokens = lexer(text);
  return tokens.slice(0, -1).reduce((sum, token) => sum + token.raw.length, 0);
}

function blocks(tokens: readonly Token[], options: MarkdownOptions): string[] {
  return tokens.flatMap((token, at) => {
    // One empty line between blocks, none at the beginning or end.
    if (token.type === "space") return at === 0 || at === tokens.length - 1 ? [] : [""];
    const lines = block(token as MarkedToken, options);
    const next = tokens[at + 1];
    const close = token.type === "heading" && next !== undefined && next.type !== "space";
    return close ? [lines, ""] : [lines];
  });
}

function block(token: MarkedToken, options: MarkdownOptions): string {
  const { style, columns } = options;
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- what is not drawn is shown as it was written
  switch (token.type) {
    case "heading":
      return wrapped(style("bold", inline(token.tokens, style)), columns);
    case "paragraph":
      return wrapped(inline(token.tokens, style), columns);
    case "text":
      return wrapped(token.tokens === undefined ? token.text : inline(token.tokens, style), columns);
    case "code":
      return token.text
        .split("\n")
        .map((line) => `    ${style("cyan", line)}`)
        .join("\n");
    case "list":
      return token.items.map((item, at) => listItem(item, bulletOf(token, at), options)).join("\n");
    case "blockquote":
      return indented(
        blocks(token.tokens, narrower(options, 2)).join("\n"),
        style("dim", "│ "),
        style("dim", "│ "),
      );
    case "table":
      return table(token, options);
    case "hr":
      return style("dim", "─".repeat(Math.min(columns, 40)));
    default:
      return wrapped(token.raw.replace(/\n+$/, ""), columns);
  }
}

const narrower = ({ style, columns }: MarkdownOptions, by: number): MarkdownOptions => ({
  style,
  columns: Math.max(20, columns - by),
});

function bulletOf({ ordered, start }: Tokens.List, at: number): string {
  return ordered ? `${Number(start || 1) + at}. ` : "• ";
}

function listItem(item: Tokens.ListItem, bullet: string, options: MarkdownOptions): string {
  const box = item.task ? `${item.checked === true ? "☑" : "☐"} ` : "";
  const first = box === "" ? bullet : box;
  const body = blocks(
    item.tokens.filter(({ type }) => (type as string) !== "checkbox"),
    narrower(options, first.length),
  );
  return indented(body.join("\n"), first, " ".repeat(first.length));
}

function indented(text: string, first: string, rest: string): string {
  return text
    .split("\n")
    .map((line, at) => `${at === 0 ? first : rest}${line}`.trimEnd())
    .join("\n");
}

function table({ header, rows }: Tokens.Table, { style, columns }: MarkdownOptions): string {
  const texts = [header, ...rows].map((row) => row.map((cell) => inline(cell.tokens, style)));
  const widths = header.map((_, at) => Math.max(...texts.map((row) => stringWidth(row[at] ?? ""))));
  const line = (row: readonly string[]) =>
    fitted(
      row.map((cell, at) => cell + " ".repeat(Math.max(0, (widths[at] ?? 0) - stringWidth(cell)))).join("  "),
      columns,
    ).trimEnd();
  const [head = [], ...body] = texts;
  const rule = style("dim", widths.map((width) => "─".repeat(width)).join("  "));
  return [line(head.map((cell) => style("bold", cell))), fitted(rule, columns), ...body.map(line)].join("\n");
}

function inline(tokens: readonly Token[], style: Style): string {
  return (tokens as readonly MarkedToken[]).map((token) => span(token, style)).join("");
}

function span(token: MarkedToken, style: Style): string {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- what is not drawn is shown as it was written
  switch (token.type) {
    case "strong":
      return style("bold", inline(token.tokens, style));
    case "em":
      return style("italic", inline(token.tokens, style));
    case "del":
      return style("dim", inline(token.tokens, style));
    case "codespan":
      return style("cyan", token.text);
    case "br":
      return "\n";
    case "link": {
      const text = inline(token.tokens, style);
      return token.href === token.text || token.href === `mailto:${token.text}`
        ? text
        : `${text} ${style("dim", `(${token.href})`)}`;
    }
    case "image":
      return `${token.text} ${style("dim", `(${token.href})`)}`;
    case "escape":
      return token.text;
    case "text":
      return token.tokens === undefined ? token.text : inline(token.tokens, style);
    default:
      return token.raw;
  }
}
