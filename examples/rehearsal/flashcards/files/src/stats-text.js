// Statistics as text for a terminal.

import { countCards, forecast, retention, streak } from "./stats.js";

const BAR_WIDTH = 30;

export function statsText(collection, day) {
  const { total, decks } = countCards(collection, day);
  const kept = retention(collection, { day });
  const days = streak(collection, day);
  return [
    table([
      ["deck", "cards", "due", "new", "mature", "suspended"],
      ...[...decks, { deck: "all", ...total }].map((row) => [
        row.deck,
        row.cards,
        row.due,
        row.new,
        row.mature,
        row.suspended,
      ]),
    ]),
    "",
    `Retention in 30 days: ${kept === undefined ? "no repeated answers yet" : `${Math.round(kept * 100)} %`}`,
    `Streak: ${days} ${days === 1 ? "day" : "days"}`,
    "",
    "Coming reviews:",
    bars(forecast(collection, { day })),
  ].join("\n");
}

function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  const pad = (cell, column) =>
    column === 0 ? String(cell).padEnd(widths[column]) : String(cell).padStart(widths[column]);
  return rows.map((row) => row.map(pad).join("  ").trimEnd()).join("\n");
}

function bars(days) {
  const most = Math.max(1, ...days.map((one) => one.cards));
  return days
    .map(({ day, cards }) => `${day}  ${"█".repeat(Math.round((cards / most) * BAR_WIDTH))} ${cards}`)
    .join("\n");
}
