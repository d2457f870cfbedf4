// The commands that read or write files or open a port. Their shape is explained in commands.js.

import { readFile, writeFile } from "node:fs/promises";
import { parseArgs, UsageError, wholeNumber } from "./args.js";
import { addCard, hasFront } from "./cards.js";
import { chooseGenerator, drafts } from "./generator/generator.js";
import { parseQuery } from "./search.js";
import { startServer } from "./server.js";
import { exportCsv, importCsv } from "./transfer.js";

export const FILE_COMMANDS = {
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
    usage: "generate FILE.txt --deck DECK [--with NAME] [--yes]",
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
