/**
 * A summariser that follows a script: of the facts in what it was given to read it keeps rules first and then the
 * newest, as many as six tenths of its length hold; the rest of the length is narrative. Pure.
 */
import { createRandom, type Random } from "../../support/random.ts";
import { countTokens } from "./replay.ts";
import type { Fact } from "./trajectory.ts";

export interface ScriptedSummary {
  readonly facts: readonly Fact[];
  readonly narrative: string;
}

const FACT_SHARE = 0.6;

/**
 * @param seen what the summariser reads, oldest first
 * @param targetTokens how long its answers are
 */
export function scriptedSummary(facts: readonly Fact[], seen: string, targetTokens: number): ScriptedSummary {
  const newestFirst = facts
    .map((fact) => ({ fact, at: seen.lastIndexOf(fact.key) }))
    .filter(({ at }) => at !== -1)
    .toSorted((a, b) => b.at - a.at)
    .map(({ fact }) => fact);
  const rules = newestFirst.filter((fact) => fact.kind === "rule");
  const kept: Fact[] = [];
  let room = targetTokens * FACT_SHARE;
  for (const fact of [...rules, ...newestFirst.filter((candidate) => candidate.kind !== "rule")]) {
    room -= countTokens(`- ${fact.words}\n`);
    if (room < 0) break;
    kept.push(fact);
  }
  // Some 5.2 characters a token, as of other prose here.
  const left = targetTokens * (1 - FACT_SHARE) + Math.max(0, room);
  return { facts: kept.toReversed(), narrative: prose(createRandom(seen.length), left * 4.6) };
}

const NOUNS =
  "account address batch budget cache card channel client cursor deck entry event filter handler history import index invoice job ledger limit merchant message order page parser payment period policy queue rate record report request retry review rule schedule schema session source store stream tag task token user value window worker".split(
    " ",
  );
const VERBS =
  "apply build check claim close collect compare create drop expand fetch find flush format group import list load merge normalise open parse publish read refresh reject render replace resolve save schedule send sort split store sum take update validate write".split(
    " ",
  );
const PLAIN =
  "the a of to and in that is it for on with as at by this not are from or when which before after while only each every still because".split(
    " ",
  );

function sentence(random: Random, words: number): string {
  const list = Array.from({ length: words }, (_, at) =>
    at % 2 === 0 ? random.pick(PLAIN) : random.pick(random.next() < 0.7 ? NOUNS : VERBS),
  );
  const text = list.join(" ");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function prose(random: Random, chars: number): string {
  let text = "";
  while (text.length < chars) text += `${sentence(random, 6 + random.below(12))} `;
  return text.trim();
}
