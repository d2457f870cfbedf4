// A small query language:  tag:verb deck:Spanish is:due "two words" -word
// All terms must hold; a minus in front turns a term round.

/** Parses a query once; the result tells of each card whether it matches. @throws RangeError for a wrong term */
export function parseQuery(query, day) {
  const terms = tokens(query).map((token) => {
    const negated = token.startsWith("-") && token.length > 1;
    const test = termOf(negated ? token.slice(1) : token, day);
    return negated ? (card) => !test(card) : test;
  });
  return (card) => terms.every((test) => test(card));
}

export function searchCards(collection, query, day) {
  return collection.cards.filter(parseQuery(query, day));
}

export function isDue(card, day) {
  return !card.suspended && card.schedule.due <= day;
}

export function isNew(card) {
  return card.schedule.repetitions === 0 && card.schedule.interval === 0;
}

const STATES = {
  due: isDue,
  new: (card) => isNew(card),
  suspended: (card) => card.suspended,
  leech: (card) => card.schedule.lapses >= 8,
};

function termOf(token, day) {
  const [, key, value] = /^(tag|deck|is):(.+)$/i.exec(token) ?? [];
  const wanted = unquoted(value ?? token).toLowerCase();
  switch (key?.toLowerCase()) {
    case "tag":
      return (card) => card.tags.includes(wanted);
    case "deck":
      return (card) => card.deck.toLowerCase() === wanted;
    case "is": {
      const state = Object.hasOwn(STATES, wanted) ? STATES[wanted] : undefined;
      if (state === undefined) {
        throw new RangeError(`"is:${wanted}" is unknown; there are: ${Object.keys(STATES).join(", ")}.`);
      }
      return (card) => state(card, day);
    }
    default:
      return (card) => `${card.front}\n${card.back}`.toLowerCase().includes(wanted);
  }
}

// Words, where quotes keep spaces together: deck:"My deck" is one token.
function tokens(query) {
  return query.match(/(?:[^\s"]|"[^"]*")+/g) ?? [];
}

function unquoted(text) {
  return text.replaceAll('"', "");
}
