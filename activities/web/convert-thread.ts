/** The thread of `convert-html.ts`: one page, hostile or not, as Markdown or as bare text. Imports nothing else of ours. */
import { parentPort, workerData } from "node:worker_threads";
import type { Conversion, Converted } from "./convert-html.ts";

/** What is used of a DOM. */
interface PageNode {
  readonly textContent: string | null;
  readonly nodeName: string;
  readonly parentNode: PageNode | null;
  readonly children: ArrayLike<PageNode>;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  remove(): void;
  querySelectorAll(selector: string): Iterable<PageNode>;
}

interface Page extends PageNode {
  readonly body: PageNode;
  readonly title: string;
  cloneNode(deep: true): Page;
}

/** An article that is less than this part of the page's text is not what the page is for: a list, an index, an application. */
const MIN_ARTICLE = 0.3;
const NO_TEXT = "script, style, noscript, template, svg, iframe, object, embed, head, link, meta";

async function markdownOf({ html, address }: Conversion): Promise<Converted> {
  const { parseHTML } = await import("linkedom");
  const parse = (text: string) => (parseHTML(text) as unknown as { readonly document: Page }).document;
  const page = parse(/<html[\s>]/i.test(html) ? html : `<html><body>${html}</body></html>`);
  const title = page.title.trim();
  const whole = page.cloneNode(true);
  for (const node of whole.querySelectorAll(NO_TEXT)) node.remove();
  const article = await articleOf(page);
  const isArticle = (article?.text ?? 0) >= lengthOf(whole.body) * MIN_ARTICLE;
  const content =
    article !== undefined && isArticle
      ? parse(`<html><body>${article.content}</body></html>`).body
      : whole.body;
  resolveLinks(content, address);
  return { text: await toMarkdown(content), title: title === "" ? undefined : title, remarks: [] };
}

const lengthOf = ({ textContent }: PageNode) => (textContent ?? "").replace(/\s+/g, " ").length;

async function articleOf(page: Page) {
  const { Readability } = await import("@mozilla/readability");
  const article = new Readability(page as unknown as ConstructorParameters<typeof Readability>[0]).parse();
  const { content, textContent } = (article ?? {}) as {
    content?: string | null;
    textContent?: string | null;
  };
  if (!content) return undefined;
  return { content, text: (textContent ?? "").replace(/\s+/g, " ").length };
}

function resolveLinks(content: PageNode, address: string): void {
  for (const [selector, name] of [
    ["a[href]", "href"],
    ["img[src]", "src"],
  ] as const)
    for (const node of content.querySelectorAll(selector)) {
      const link = node.getAttribute(name) ?? "";
      // A picture's own bytes are no text.
      const isData = /^\s*data:/i.test(link);
      node.setAttribute(name, !isData && URL.canParse(link, address) ? new URL(link, address).href : "");
    }
}

async function toMarkdown(content: PageNode): Promise<string> {
  const { default: Turndown } = await import("turndown");
  const service = new Turndown({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-" });
  service.addRule("row", {
    filter: "tr",
    replacement: (inner, node) => row(inner, node as unknown as PageNode),
  });
  service.addRule("part", {
    filter: ["thead", "tbody", "tfoot"],
    replacement: (inner) => `\n${inner.trim()}`,
  });
  service.addRule("table", { filter: "table", replacement: (inner) => `\n\n${inner.trim()}\n\n` });
  service.addRule("cell", {
    filter: ["td", "th"],
    replacement: (inner) =>
      ` ${inner
        .trim()
        .replace(/\s*\n+\s*/g, " ")
        .replaceAll("|", "\\|")} |`,
  });
  return service.turndown(content as unknown as Parameters<typeof service.turndown>[0]);
}

/** The first row of a table is its head: Markdown has none without. */
function row(cells: string, node: PageNode): string {
  const { parentNode } = node;
  const isFirst =
    parentNode?.children[0] === node &&
    (parentNode.nodeName !== "TBODY" || parentNode.parentNode?.children[0] === parentNode);
  const rule = isFirst ? `\n|${" --- |".repeat(node.children.length)}` : "";
  return `\n|${cells}${rule}`;
}

const BREAKS = /^(p|div|br|li|tr|h[1-6]|section|article|pre|table|ul|ol|dt|dd|blockquote)$/;
const HIDDEN = /^(script|style|noscript|template|svg|title|textarea)$/;

/** The name of the tag that begins there. */
function nameAt(html: string, open: number): string | undefined {
  const tag = /<\/?([a-z][a-z0-9]{0,20})/iy;
  tag.lastIndex = open;
  return tag.exec(html)?.[1];
}

/** In one pass, whatever is nested in what. */
function bareText(html: string): string {
  const pieces: string[] = [];
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf("<", at);
    if (open === -1) break;
    pieces.push(html.slice(at, open));
    const close = html.startsWith("<!--", open) ? html.indexOf("-->", open) + 2 : html.indexOf(">", open);
    if (close < open) return finished(pieces);
    const name = nameAt(html, open)?.toLowerCase() ?? "";
    at = close + 1;
    if (BREAKS.test(name)) pieces.push("\n");
    if (!HIDDEN.test(name) || html[open + 1] === "/") continue;
    const ending = new RegExp(`</${name}`, "gi");
    ending.lastIndex = at;
    const end = ending.exec(html)?.index;
    if (end === undefined) return finished(pieces);
    at = end;
  }
  pieces.push(html.slice(at));
  return finished(pieces);
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
};

const finished = (pieces: readonly string[]): string =>
  pieces
    .join("")
    .replace(/&(amp|lt|gt|quot|apos|nbsp);/g, (whole, name: string) => ENTITIES[name] ?? whole)
    .replace(/[^\S\n]+/g, " ")
    .replace(/ ?\n[ \n]*/g, "\n")
    .trim();

const conversion = workerData as Conversion;
const converted =
  conversion.to === "markdown"
    ? await markdownOf(conversion)
    : { text: bareText(conversion.html), remarks: [] };
parentPort?.postMessage(converted);
