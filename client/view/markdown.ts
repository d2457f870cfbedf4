/** Markdown, read once for all views. Each view says how it draws a part; what it does not know is drawn as it was written. */
import { lexer, type MarkedToken, type Token } from "marked";

/** The content of a quote or an item, which a view may draw with less room. */
type MarkdownBody<Drawn> = (drawing: MarkdownDrawing<Drawn>) => Drawn;

export interface MarkdownItem<Drawn> {
  /** `☑ ` or `☐ ` for a task, else empty. */
  readonly box: string;
  readonly body: MarkdownBody<Drawn>;
}

/** How a view draws each part. */
export interface MarkdownDrawing<Drawn> {
  readonly text: (text: string) => Drawn;
  readonly code: (text: string) => Drawn;
  readonly marked: (kind: "strong" | "em" | "del", inner: Drawn) => Drawn;
  readonly lineBreak: () => Drawn;
  /** @param text as it was written */
  readonly link: (inner: Drawn, href: string, text: string) => Drawn;
  readonly image: (text: string, href: string) => Drawn;
  readonly inline: (parts: readonly Drawn[]) => Drawn;
  readonly heading: (inner: Drawn) => Drawn;
  readonly paragraph: (inner: Drawn) => Drawn;
  /** The text of an item, which is no paragraph of its own. */
  readonly line: (inner: Drawn) => Drawn;
  readonly fence: (text: string) => Drawn;
  readonly quote: (body: MarkdownBody<Drawn>) => Drawn;
  readonly rule: () => Drawn;
  /** @param first number of the first item; undefined without numbers */
  readonly list: (items: readonly MarkdownItem<Drawn>[], first: number | undefined) => Drawn;
  readonly table: (header: readonly Drawn[], rows: readonly (readonly Drawn[])[]) => Drawn;
  /** A block that is drawn as it was written. */
  readonly raw: (text: string) => Drawn;
  /** @param parts `space`: the text has empty lines there */
  readonly blocks: (parts: readonly MarkdownBlock<Drawn>[]) => Drawn;
}

export interface MarkdownBlock<Drawn> {
  readonly type: string;
  readonly drawn: Drawn;
}

export function drawMarkdown<Drawn>(text: string, drawing: MarkdownDrawing<Drawn>): Drawn {
  return blocks(lexer(text), drawing);
}

/** Where the last block of a growing text begins: everything before it is complete. */
export function lastBlockAt(text: string): number {
  return lexer(text)
    .slice(0, -1)
    .reduce((sum, token) => sum + token.raw.length, 0);
}

function blocks<Drawn>(tokens: readonly Token[], drawing: MarkdownDrawing<Drawn>): Drawn {
  return drawing.blocks(
    tokens.map((token) => ({ type: token.type, drawn: block(token as MarkedToken, drawing) })),
  );
}

function block<Drawn>(token: MarkedToken, drawing: MarkdownDrawing<Drawn>): Drawn {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- what is not known is drawn as it was written
  switch (token.type) {
    case "heading":
      return drawing.heading(inline(token.tokens, drawing));
    case "paragraph":
      return drawing.paragraph(inline(token.tokens, drawing));
    case "text":
      return drawing.line(span(token, drawing));
    case "code":
      return drawing.fence(token.text);
    case "blockquote":
      return drawing.quote((within) => blocks(token.tokens, within));
    case "hr":
      return drawing.rule();
    case "list": {
      const items = token.items.map(({ task, checked, tokens }) => ({
        box: task ? `${checked === true ? "☑" : "☐"} ` : "",
        body: (within: MarkdownDrawing<Drawn>) =>
          blocks(
            tokens.filter(({ type }) => (type as string) !== "checkbox"),
            within,
          ),
      }));
      return drawing.list(items, token.ordered ? Number(token.start || 1) : undefined);
    }
    case "table": {
      const [header = [], ...rows] = [token.header, ...token.rows].map((row) =>
        row.map((cell) => inline(cell.tokens, drawing)),
      );
      return drawing.table(header, rows);
    }
    default:
      return drawing.raw(token.raw);
  }
}

function inline<Drawn>(tokens: readonly Token[], drawing: MarkdownDrawing<Drawn>): Drawn {
  return drawing.inline((tokens as readonly MarkedToken[]).map((token) => span(token, drawing)));
}

function span<Drawn>(token: MarkedToken, drawing: MarkdownDrawing<Drawn>): Drawn {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- what is not known is drawn as it was written
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      return drawing.marked(token.type, inline(token.tokens, drawing));
    case "codespan":
      return drawing.code(token.text);
    case "br":
      return drawing.lineBreak();
    case "link":
      return drawing.link(inline(token.tokens, drawing), token.href, token.text);
    case "image":
      return drawing.image(token.text, token.href);
    case "escape":
      return drawing.text(token.text);
    case "text":
      return token.tokens === undefined ? drawing.text(token.text) : inline(token.tokens, drawing);
    default:
      return drawing.text(token.raw);
  }
}
