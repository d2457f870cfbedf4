// Cards from and to CSV with the columns front, back, tags, deck. Tags are separated by spaces.

import { addCard, hasFront } from "./cards.js";
import { formatCsv, parseCsv } from "./csv.js";

const COLUMNS = ["front", "back", "tags", "deck"];

/**
 * Adds the cards of a CSV text. A first line with column names may set their order; without one it is front, back,
 * tags, deck. What cannot be taken is left out and named by its row, so that one bad line does not cost the others.
 * @returns {{collection, added: number, skipped: {row: number, reason: string}[]}}
 */
export function importCsv(collection, text, { deck, day }) {
  const rows = parseCsv(text, text.split("\n", 1)[0].includes("\t") ? "\t" : ",");
  const header = headerOf(rows[0]);
  const columns = header ?? COLUMNS;
  const skipped = [];
  let result = collection;
  let added = 0;
  rows.forEach((fields, index) => {
    if (index === 0 && header !== undefined) return;
    const row = Object.fromEntries(columns.map((column, at) => [column, fields[at] ?? ""]));
    const target = row.deck?.trim() || deck;
    try {
      if (hasFront(result, target, row.front ?? ""))
        throw new RangeError("a card with this front is there already");
      const tags = (row.tags ?? "").split(/\s+/);
      result = addCard(result, { deck: target, front: row.front, back: row.back, tags }, day).collection;
      added++;
    } catch (error) {
      skipped.push({ row: index + 1, reason: error.message });
    }
  });
  return { collection: result, added, skipped };
}

/** CSV text of cards, readable by `importCsv` and by other programs. */
export function exportCsv(cards) {
  return formatCsv([
    COLUMNS,
    ...cards.map((card) => [card.front, card.back, card.tags.join(" "), card.deck]),
  ]);
}

function headerOf(row) {
  const names = row?.map((name) => name.trim().toLowerCase());
  return names?.includes("front") && names.includes("back") ? names : undefined;
}
