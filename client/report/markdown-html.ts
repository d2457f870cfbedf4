/** Markdown as safe HTML: others' text is escaped, nothing is fetched, links lead to the web only. */
import { drawMarkdown, type MarkdownDrawing } from "../view/markdown.ts";
import { html, Html } from "./html.ts";

export function markdownHtml(text: string): Html {
  return drawMarkdown(text, DRAWING);
}

const DRAWING: MarkdownDrawing<Html> = {
  text: (text) => html`${text}`,
  code: (text) => html`<code>${text}</code>`,
  marked: (kind, inner) => new Html(`<${kind}>${inner.text}</${kind}>`),
  lineBreak: () => html`<br />`,
  link: (inner, href) =>
    /^https?:\/\//i.test(href)
      ? html`<a href="${href}" rel="noreferrer noopener">${inner}</a>`
      : html`${inner} (${href})`,
  image: (text, href) => html`${text} (${href})`,
  // White space between the parts would be drawn.
  inline: (parts) => new Html(parts.map(({ text }) => text).join("")),
  // Not a heading element, because it ranks below the headings of the page itself.
  heading: (inner) => html`<p class="heading">${inner}</p>`,
  paragraph: (inner) => html`<p>${inner}</p>`,
  line: (inner) => inner,
  fence: (text) => html`<pre>${text}</pre>`,
  quote: (body) => html`<blockquote>${body(DRAWING)}</blockquote>`,
  rule: () => html`<hr />`,
  list: (items, first) => {
    const parts = items.map(
      ({ box, body }) => html`<li class="${box === "" ? "" : "check"}">${box}${body(DRAWING)}</li>`,
    );
    return first === undefined
      ? html`<ul>
          ${parts}
        </ul>`
      : html`<ol start="${first}">
          ${parts}
        </ol>`;
  },
  table: (header, rows) =>
    html`<div class="scroll" tabindex="0" role="region" aria-label="table">
      <table>
        <thead>
          <tr>
            ${header.map((cell) => html`<th scope="col">${cell}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (row) =>
              html`<tr>
                ${row.map((cell) => html`<td>${cell}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>`,
  raw: (text) => html`<p>${text}</p>`,
  blocks: (parts) => html`${parts.filter(({ type }) => type !== "space").map(({ drawn }) => drawn)}`,
};
