// HTML as text. Whatever comes from a card goes through `html`, which escapes it.

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export function escapeHtml(value) {
  return String(value).replace(/[&<>"']/g, (char) => ESCAPES[char]);
}

const STYLE = `
  body { font: 17px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; color: #222 }
  .card { border: 1px solid #ccc; border-radius: 12px; padding: 2rem; text-align: center; font-size: 1.4rem }
  .back { color: #2a6f4e; border-top: 1px dashed #ccc; margin-top: 1rem; padding-top: 1rem }
  button { font: inherit; padding: .5rem 1rem; border-radius: 8px; border: 1px solid #999; cursor: pointer }
  form { display: flex; gap: .5rem; justify-content: center; margin-top: 1rem; flex-wrap: wrap }
  td, th { padding: .2rem .8rem; text-align: right } td:first-child, th:first-child { text-align: left }`;

function page(title, body) {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title><style>${STYLE}</style><h1>${escapeHtml(title)}</h1>${body}</html>`;
}

export function decksPage({ total, decks }) {
  const row = (one) =>
    `<tr><td><a href="/review?deck=${encodeURIComponent(one.deck)}">${escapeHtml(one.deck)}</a></td>` +
    `<td>${one.cards}</td><td>${one.due}</td><td>${one.new}</td></tr>`;
  const head = "<tr><th>Deck</th><th>Cards</th><th>Due</th><th>New</th></tr>";
  const body =
    decks.length === 0 ? "<p>No cards yet.</p>" : `<table>${head}${decks.map(row).join("")}</table>`;
  return page(
    "Recall",
    `${body}<p>${total.due + total.new} cards wait. <a href="/review">Review all</a></p>`,
  );
}

export function cardPage({ card, left, shown, intervals, deck }) {
  const hidden = `<input type="hidden" name="id" value="${card.id}"><input type="hidden" name="deck" value="${escapeHtml(deck ?? "")}">`;
  const back = shown ? `<div class="back">${escapeHtml(card.back)}</div>` : "";
  const grades = Object.entries(intervals)
    .map(
      ([grade, days]) => `<button name="grade" value="${grade}">${grade} <small>${days} d</small></button>`,
    )
    .join("");
  const query = `/review?show=1${deck === undefined ? "" : `&deck=${encodeURIComponent(deck)}`}`;
  const below = shown
    ? `<form method="post" action="/answer">${hidden}${grades}</form>`
    : `<p style="text-align:center"><a href="${query}">Show the answer</a></p>`;
  return page(
    `${left} left`,
    `<div class="card">${escapeHtml(card.front)}${back}</div>${below}<p><a href="/">Decks</a></p>`,
  );
}

export function donePage() {
  return page("Done", '<p>Nothing is due. Come back tomorrow.</p><p><a href="/">Decks</a></p>');
}
