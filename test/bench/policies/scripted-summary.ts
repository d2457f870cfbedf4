/**
 * A summariser that follows a script: of the facts in what it was given to read it keeps rules first and then the
 * newest, as many as six tenths of its length hold; the rest of the length is narrative. Pure.
 */
import { createRandom } from "../../support/random.ts";
import { prose } from "./material.ts";
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
  for (const fact of [...rules, ...newestFirst.filter((each) => each.kind !== "rule")]) {
    room -= countTokens(`- ${fact.words}\n`);
    if (room < 0) break;
    kept.push(fact);
  }
  // Some 5.2 characters a token, as of other prose here.
  const left = targetTokens * (1 - FACT_SHARE) + Math.max(0, room);
  return { facts: kept.toReversed(), narrative: prose(createRandom(seen.length), left * 4.6) };
}
