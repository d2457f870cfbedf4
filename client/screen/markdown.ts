/** Markdown for terminals: headings, lists, code, tables, emphasis; unknown syntax is unchanged. */
import stringWidth from "string-width";
import type { Style } from "../console/output.ts";
import { harmless } from "../console/format.ts";
import {
  drawMarkdown,
  type MarkdownBlock,
  type MarkdownDrawing,
  type MarkdownItem,
} from "../view/markdown.ts";
import { fitted, wrapped } from "./wrap.ts";

export interface MarkdownOptions {
  readonly style: Style;
  readonly columns: number;
}

/** Longer lines of prose are hard to read. Source: Bringhurst, 45 to 75 characters; code and lists need more. */
const PROSE_COLUMNS = 100;

/** @returns whole lines, without a line end after the last */
export function renderMarkdown(text: string, { style, columns }: MarkdownOptions): string {
  return drawMarkdown(harmless(text), drawingFor({ style, columns: Math.min(columns, PROSE_COLUMNS) }));
}

const LOOKS = { strong: "bold", em: "italic", del: "dim" } as const;

function drawingFor(options: MarkdownOptions): MarkdownDrawing<string> {
  const { style, columns } = options;
  const prose = (inner: string) => wrapped(inner, columns);
  return {
    text: (text) => text,
    code: (text) => style("cyan", text),
    marked: (kind, inner) => style(LOOKS[kind], inner),
    lineBreak: () => "\n",
    link: (inner, href, text) =>
      href === text || href === `mailto:${text}` ? inner : `${inner} ${style("dim", `(${href})`)}`,
    image: (text, href) => `${text} ${style("dim", `(${href})`)}`,
    inline: (parts) => parts.join(""),
    heading: (inner) => prose(style("bold", inner)),
    paragraph: prose,
    line: prose,
    fence: (text) =>
      indented(
        text
          .split("\n")
          .map((line) => style("cyan", line))
          .join("\n"),
        "    ",
        "    ",
      ),
    quote: (body) => {
      const bar = style("dim", "│ ");
      return indented(body(drawingFor(narrower(options, 2))), bar, bar);
    },
    rule: () => style("dim", "─".repeat(Math.min(columns, 40))),
    list: (items, first) =>
      items
        .map((item, at) => listItem(item, first === undefined ? "• " : `${first + at}. `, options))
        .join("\n"),
    table: (header, rows) => table([header, ...rows], options),
    raw: (text) => prose(text.replace(/\n+$/, "")),
    blocks,
  };
}

function blocks(parts: readonly MarkdownBlock<string>[]): string {
  const lines = parts.flatMap(({ type, drawn }, at) => {
    // One empty line between blocks, none at the beginning or end.
    if (type === "space") return at === 0 || at === parts.length - 1 ? [] : [""];
    const next = parts[at + 1];
    return type === "heading" && next !== undefined && next.type !== "space" ? [drawn, ""] : [drawn];
  });
  return lines.join("\n");
}

const narrower = ({ style, columns }: MarkdownOptions, by: number): MarkdownOptions => ({
  style,
  columns: Math.max(20, columns - by),
});

function listItem({ box, body }: MarkdownItem<string>, bullet: string, options: MarkdownOptions): string {
  const first = box === "" ? bullet : box;
  return indented(body(drawingFor(narrower(options, first.length))), first, " ".repeat(first.length));
}

function indented(text: string, first: string, rest: string): string {
  return text
    .split("\n")
    .map((line, at) => `${at === 0 ? first : rest}${line}`.trimEnd())
    .join("\n");
}

function table(texts: readonly (readonly string[])[], { style, columns }: MarkdownOptions): string {
  const [head = [], ...body] = texts;
  const widths = head.map((_, at) => Math.max(...texts.map((row) => stringWidth(row[at] ?? ""))));
  const line = (row: readonly string[]) =>
    fitted(
      row.map((cell, at) => cell + " ".repeat(Math.max(0, (widths[at] ?? 0) - stringWidth(cell)))).join("  "),
      columns,
    ).trimEnd();
  const rule = style("dim", widths.map((width) => "─".repeat(width)).join("  "));
  return [line(head.map((cell) => style("bold", cell))), fitted(rule, columns), ...body.map(line)].join("\n");
}
