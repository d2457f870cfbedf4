// Cards without any model: definitions, "question? answer" pairs and sentences with a figure to remember.
// It finds what is plainly there and makes nothing up.

const DEFINITION = /^(?:[-*]\s+)?([^:.?!]{2,60}?)\s*(?::|\s[-–—]\s)\s*(\S.+)$/;
const QUESTION = /^(?:Q:\s*)?(.+\?)\s+(?:A:\s*)?(\S.+)$/;
const IS_A = /^((?:The |An? )?[A-Z][\w'’ -]{1,50}?) (is|are|was|were) ((?:a|an|the) .+)\.$/;
const FIGURE = /\b\d[\d.,]*(?:\s?%)?/;

export function createRuleGenerator() {
  return {
    name: "rules",
    generate: async (text, { count }) => text.split(/\n+/).flatMap(cardsOfLine).slice(0, count),
  };
}

function cardsOfLine(line) {
  const trimmed = line.trim();
  if (trimmed === "" || trimmed.startsWith("#")) return [];
  const question = QUESTION.exec(trimmed);
  if (question) return [{ front: question[1], back: question[2] }];
  const definition = DEFINITION.exec(trimmed);
  if (definition) return [{ front: definition[1], back: definition[2] }];
  return sentences(trimmed).flatMap(cardsOfSentence);
}

function cardsOfSentence(sentence) {
  const isA = IS_A.exec(sentence);
  if (isA) return [{ front: `What ${isA[2]} ${lowerArticle(isA[1])}?`, back: isA[3] }];
  const figure = FIGURE.exec(sentence);
  if (figure && sentence.length >= 20)
    return [{ front: sentence.replace(figure[0], "[…]"), back: figure[0] }];
  return [];
}

function sentences(text) {
  return text.split(/(?<=[.!?])\s+(?=[A-Z])/);
}

function lowerArticle(term) {
  return term.replace(/^(The|An?) /, (article) => article.toLowerCase());
}
