/** Markdown as safe HTML: others' text is escaped, nothing is fetched, links lead to the web only. */
import { lexer, type MarkedToken, type Token } from "marked";
import { html, Html } from "./html.ts";

export function markdownHtml(text: string): Html {
  return blocks(lexer(text));
}

const blocks = (tokens: readonly Token[]): Html =>
  html`${tokens.map((token) => block(token as MarkedToken))}`;
/** Omits the white space between a list's items, which would be rendered. */
const inline = (tokens: readonly Token[]): Html =>
  new Html((tokens as MarkedToken[]).map((token) => span(token).text).join(""));

function block(token: MarkedToken): Html {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- what is not drawn is shown as it was written
  switch (token.type) {
    case "space":
      return html``;
    case "heading":
      // Not a heading element, because it ranks below the headings of the page itself.
      return html`<p class="heading">${inline(token.tokens)}</p>`;
    case "paragraph":
      return html`<p>${inline(token.tokens)}</p>`;
    case "text":
      return token.tokens === undefined ? html`${token.text}` : inline(token.tokens);
    case "code":
      return html`<pre>${token.text}</pre>`;
    case "blockquote":
      return html`<blockquote>${blocks(token.tokens)}</blockquote>`;
    case "hr":
      return html`<hr />`;
    case "list": {
      const items = token.items.map(
        (item) =>
          html`<li class="${item.task ? "check" : ""}">
            ${item.task ? box(item.checked === true) : ""}${blocks(
              item.tokens.filter(({ type }) => type !== "checkbox"),
            )}
          </li>`,
      );
      return token.ordered
        ? html`<ol start="${Number(token.start || 1)}">
            ${items}
          </ol>`
        : html`<ul>
            ${items}
          </ul>`;
    }
    case "table":
      return html`<div class="scroll" tabindex="0" role="region" aria-label="table">
        <table>
          <thead>
            <tr>
              ${token.header.map((cell) => html`<th scope="col">${inline(cell.tokens)}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${token.rows.map(
              (row) =>
                html`<tr>
                  ${row.map((cell) => html`<td>${inline(cell.tokens)}</td>`)}
                </tr>`,
            )}
          </tbody>
        </table>
      </div>`;
    default:
      return html`<p>${token.raw}</p>`;
  }
}

const box = (isChecked: boolean): string => (isChecked ? "☑ " : "☐ ");

function span(token: MarkedToken): Html {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- what is not drawn is shown as it was written
  switch (token.type) {
    case "strong":
      return html`<strong>${inline(token.tokens)}</strong>`;
    case "em":
      return html`<em>${inline(token.tokens)}</em>`;
    case "del":
      return html`<del>${inline(token.tokens)}</del>`;
    case "codespan":
      return html`<code>${token.text}</code>`;
    case "br":
      return html`<br />`;
    case "escape":
      return html`${token.text}`;
    case "link":
      return /^https?:\/\//i.test(token.href)
        ? html`<a href="${token.href}" rel="noreferrer noopener">${inline(token.tokens)}</a>`
        : html`${inline(token.tokens)} (${token.href})`;
    case "image":
      return html`${token.text} (${token.href})`;
    case "text":
      return token.tokens === undefined ? html`${token.text}` : inline(token.tokens);
    default:
      return html`${token.raw}`;
  }
}
