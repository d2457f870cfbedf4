/** Text as a coding agent meets it (test runs, build logs, prose), made from a seed. Pure. */
import type { Random } from "../../support/random.ts";

const NOUNS =
  "account address batch budget cache card channel client cursor deck entry event filter handler history import index invoice job ledger limit merchant message order page parser payment period policy queue rate record report request retry review rule schedule schema session source store stream tag task token user value window worker".split(
    " ",
  );
const VERBS =
  "apply build check claim close collect compare create drop expand fetch find flush format group import list load merge normalise open parse publish read refresh reject render replace resolve save schedule send sort split store sum take update validate write".split(
    " ",
  );
const ADJECTIVES =
  "active broken closed current empty expired failed first late next open pending stale".split(" ");
const PLAIN =
  "the a of to and in that is it for on with as at by this not are from or when which before after while only each every still because".split(
    " ",
  );

const noun = (random: Random) => random.pick(NOUNS);
const verb = (random: Random) => random.pick(VERBS);

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function sentence(random: Random, words: number): string {
  const list = Array.from({ length: words }, (_, at) =>
    at % 2 === 0 ? random.pick(PLAIN) : random.pick(random.next() < 0.7 ? NOUNS : VERBS),
  );
  return `${capital(list.join(" "))}.`;
}

export function prose(random: Random, chars: number): string {
  let text = "";
  while (text.length < chars) text += `${sentence(random, 6 + random.below(12))} `;
  return text.trim();
}

export function testRun(random: Random, files: number, failures: number): string {
  const lines = Array.from(
    { length: files },
    () =>
      ` ✓ test/${noun(random)}/${noun(random)}-${verb(random)}.test.ts (${random.between(1, 30)} tests) ${random.between(1, 900)}ms`,
  );
  for (let failure = 0; failure < failures; failure += 1) {
    const name = `${noun(random)}-${verb(random)}`;
    lines.push(
      ` FAIL  test/${name}.test.ts > ${sentence(random, 8)}`,
      `AssertionError: expected ${random.between(1, 99)} to be ${random.between(1, 99)} // Object.is equality`,
      ...Array.from(
        { length: 6 },
        () =>
          `    at ${verb(random)}${capital(noun(random))} (src/${name}.ts:${random.between(1, 300)}:${random.between(1, 40)})`,
      ),
    );
  }
  return [...lines, `      Tests  ${failures} failed | ${files * 9} passed (${files * 9 + failures})`].join(
    "\n",
  );
}

export function buildLog(random: Random, lines: number): string {
  return Array.from({ length: lines }, (_, at) => {
    const time = `12:${String(Math.floor(at / 60) % 60).padStart(2, "0")}:${String(at % 60).padStart(2, "0")}.${String(random.between(1, 999)).padStart(3, "0")}`;
    const dice = random.next();
    if (dice < 0.6)
      return `[${time}] INFO  bundling packages/${noun(random)}/dist/${noun(random)}.js ${random.between(1, 900)} kB in ${random.between(1, 400)} ms`;
    if (dice < 0.8)
      return `npm warn deprecated ${noun(random)}-${noun(random)}@${random.between(1, 9)}.${random.between(1, 20)}.${random.between(1, 9)}: ${sentence(random, 8)}`;
    return `[${time}] DEBUG ${verb(random)} ${noun(random)} id=${random.between(1, 99_999)} status=${random.pick(ADJECTIVES)}`;
  }).join("\n");
}
