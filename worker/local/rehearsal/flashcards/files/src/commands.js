// The commands. Each gets its arguments and {collection, day, io, env, fetch, path}; what it returns, if anything,
// is the new collection.

import { readFile, writeFile } from "node:fs/promises";
import { parseArgs, UsageError, wholeNumber } from "./args.js";
import { addCard, editCard, findCard, hasFront, removeCard } from "./cards.js";
import { chooseGenerator, drafts } from "./generator/generator.js";
import { reviewCards } from "./review.js";
import { parseQuery, searchCards } from "./search.js";
import { startServer } from "./server.js";
import { statsText } from "./stats-text.js";
import { exportCsv, importCsv } from "./transfer.js";

export const COMMANDS = {
  add: {
    usage: "add DECK FRONT BACK [--tags a,b]",
    about: "adds a card",
    run(argv, { collection, day, io }) {
      const { words, options } = parseArgs(argv, { tags: "value" });
      if (words.length !== 3) throw new UsageError("A card needs a deck, a front and a back.");
      const [deck, front, back] = words;
      if (hasFront(collection, deck, front))
        throw new RangeError(`"${deck}" has a card with this front already.`);
      const added = addCard(collection, { deck, front, back, tags: options.tags?.split(",") }, day);
      io.out(`Card ${added.card.id} is in "${added.card.deck}".`);
      return added.collection;
    },
  },
  list: {
    usage: "list [QUERY]",
    about: "shows cards",
    run(argv, { collection, day, io }) {
      const cards = searchCards(collection, argv.join(" "), day);
      for (const card of cards) io.out(lineOf(card));
      io.out(`${cards.length} of ${collection.cards.length} cards`);
    },
  },
  edit: {
    usage: "edit ID [--front TEXT] [--back TEXT] [--tags a,b]",
    about: "changes a card",
    run(argv, { collection, io }) {
      const { words, options } = parseArgs(argv, { front: "value", back: "value", tags: "value" });
      const id = wholeNumber(words[0], "ID");
      const next = editCard(collection, id, { ...options, tags: options.tags?.split(",") });
      io.out(lineOf(findCard(next, id)));
      return next;
    },
  },
  suspend: {
    usage: "suspend ID [--off]",
    about: "keeps a card out of reviews",
    run(argv, { collection, io }) {
      const { words, options } = parseArgs(argv, { off: "flag" });
      const id = wholeNumber(words[0], "ID");
      io.out(`Card ${id} is ${options.off ? "shown again" : "suspended"}.`);
      return editCard(collection, id, { suspended: !options.off });
    },
  },
  remove: {
    usage: "remove ID",
    about: "removes a card for good",
    run(argv, { collection, io }) {
      const id = wholeNumber(parseArgs(argv, {}).words[0], "ID");
      const next = removeCard(collection, id);
      io.out(`Card ${id} is removed.`);
      return next;
    },
  },
  review: {
    usage: "review [DECK] [--new N]",
    about: "asks what is due",
    async run(argv, context) {
      const { words, options } = parseArgs(argv, { new: "value" });
      const newLimit = options.new === undefined ? undefined : wholeNumber(options.new, "--new", 0);
      return await reviewCards(context, { deck: words[0], newLimit });
    },
  },
  stats: {
    usage: "stats",
    about: "counts, retention, streak, forecast",
    run(argv, { collection, day, io }) {
      parseArgs(argv, {});
      io.out(statsText(collection, day));
    },
  },
  import: {
    usage: "import FILE.csv --deck DECK",
    about: "adds cards from CSV: front, back, tags, deck",
    async run(argv, { collection, day, io }) {
      const { words, options } = parseArgs(argv, { deck: "value" });
      if (words.length !== 1) throw new UsageError("Which file?");
      const text = await readFile(words[0], "utf8");
      const result = importCsv(collection, text, { deck: options.deck ?? "Imported", day });
      for (const { row, reason } of result.skipped) io.err(`Row ${row} was left out: ${reason}`);
      io.out(`${result.added} cards added, ${result.skipped.length} left out`);
      return result.collection;
    },
  },
  export: {
    usage: "export FILE.csv [--query QUERY]",
    about: "writes cards as CSV",
    async run(argv, { collection, day, io }) {
      const { words, options } = parseArgs(argv, { query: "value" });
      if (words.length !== 1) throw new UsageError("Which file?");
      const cards = collection.cards.filter(parseQuery(options.query ?? "", day));
      await writeFile(words[0], exportCsv(cards));
      io.out(`${cards.length} cards written to ${words[0]}`);
    },
  },
  generate: {
    usage: "generate FILE.txt --deck DECK [--count N] [--with rules|openai] [--yes]",
    about: "makes cards from a text, asks before adding",
    async run(argv, { collection, day, io, env, fetch }) {
      const spec = { deck: "value", count: "value", with: "value", yes: "flag" };
      const { words, options } = parseArgs(argv, spec);
      if (words.length !== 1 || !options.deck) throw new UsageError("Which file, and which deck?");
      const generator = chooseGenerator(env, fetch, options.with);
      const count = wholeNumber(options.count ?? "10", "--count");
      const cards = await drafts(generator, await readFile(words[0], "utf8"), { count });
      const fresh = cards.filter((card) => !hasFront(collection, options.deck, card.front));
      for (const { front, back } of fresh) io.out(`${front}\n    ${back}`);
      io.out(`${fresh.length} new cards by "${generator.name}"`);
      if (fresh.length === 0) return undefined;
      if (!options.yes && !/^y/i.test((await io.ask(`Add them to "${options.deck}"? [y/N] `)) ?? ""))
        return undefined;
      const add = (all, card) =>
        addCard(all, { ...card, deck: options.deck, tags: ["generated"] }, day).collection;
      return fresh.reduce(add, collection);
    },
  },
  serve: {
    usage: "serve [--port N]",
    about: "reviews in the browser, on this machine only",
    async run(argv, { path, io, env }) {
      const { options } = parseArgs(argv, { port: "value" });
      const port = wholeNumber(options.port ?? "8080", "--port", 0);
      const server = await startServer({ path, port, today: env.RECALL_TODAY });
      io.out(`Open http://127.0.0.1:${server.port}`);
      await server.closed;
    },
  },
};

function lineOf(card) {
  const tags = card.tags.map((tag) => ` #${tag}`).join("");
  const state = card.suspended ? "suspended" : `due ${card.schedule.due}`;
  return `${String(card.id).padStart(4)}  ${card.front} = ${card.back}  [${card.deck}${tags}] ${state}`;
}
