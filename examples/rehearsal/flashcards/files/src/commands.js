// The commands. Each gets its arguments and {collection, day, io, env, fetch, path}; what it returns, if anything,
// is the new collection.

import { parseArgs, UsageError, wholeNumber } from "./args.js";
import { addCard, editCard, findCard, hasFront, removeCard } from "./cards.js";
import { FILE_COMMANDS } from "./file-commands.js";
import { reviewCards } from "./review.js";
import { searchCards } from "./search.js";
import { statsText } from "./stats-text.js";

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
  ...FILE_COMMANDS,
};

function lineOf(card) {
  const tags = card.tags.map((tag) => ` #${tag}`).join("");
  const state = card.suspended ? "suspended" : `due ${card.schedule.due}`;
  return `${String(card.id).padStart(4)}  ${card.front} = ${card.back}  [${card.deck}${tags}] ${state}`;
}
