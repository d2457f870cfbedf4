/** I7: each finished compaction has one summary that is smaller than what it replaced, and its own marks. */
import { placeOf, type Evidence, type RoundRow } from "./evidence.ts";
import { type Violation, violationOf } from "./violation.ts";

export function* checkRounds(evidence: Evidence): Iterable<Violation> {
  const finished = evidence.rounds.filter((round) => round.status !== "failed");
  for (const round of finished) yield* summaryOf(evidence, round);
  yield* orphans(evidence, finished);
  yield* numbers(finished);
  yield* marks(evidence, finished);
}

const violation = violationOf("I7");
const name = (round: RoundRow) => `round ${round.round} (epoch ${round.epoch}, step ${round.step})`;

function* summaryOf({ messages }: Evidence, round: RoundRow): Iterable<Violation> {
  const summaries = messages.filter(
    (row) => row.epoch === round.epoch && row.slot === `summary:${round.round}`,
  );
  if (summaries.length !== 1) yield violation(name(round), "one summary", `${summaries.length}`);
  if (round.tokensAfter >= round.tokensBefore)
    yield violation(name(round), `fewer than ${round.tokensBefore} tokens after it`, `${round.tokensAfter}`);
  const [summary] = summaries;
  if (summary === undefined) return;
  if ((summary.content as { text: string }[])[0]?.text !== round.summaryContent)
    yield violation(placeOf(summary), "the summary of its round", "another text");
  const isInForce = summary.supersededEpoch === null;
  if (isInForce !== (round.supersededEpoch === null) && round.status === "compacted")
    yield violation(placeOf(summary), "in force as its round is", `superseded: ${summary.supersededEpoch}`);
}

function orphans({ messages }: Evidence, rounds: readonly RoundRow[]): Violation[] {
  return messages
    .filter((row) => row.kind === "summary")
    .filter(
      (row) => !rounds.some((round) => round.epoch === row.epoch && `summary:${round.round}` === row.slot),
    )
    .map((row) => violation(placeOf(row), "a finished round that made it", "none"));
}

/** The numbers of compactions in force have no gap. */
function* numbers(rounds: readonly RoundRow[]): Iterable<Violation> {
  const live = rounds.filter((round) => round.supersededEpoch === null);
  const roundNumbers = live.map((round) => round.round).toSorted((a, b) => a - b);
  const expected = roundNumbers.map((_, index) => index + 1);
  if (roundNumbers.join() !== expected.join())
    yield violation("compaction_events", `rounds ${expected.join(", ")}`, roundNumbers.join(", "));
}

/** Exactly one compaction in force hides a row. */
function* marks({ messages }: Evidence, rounds: readonly RoundRow[]): Iterable<Violation> {
  const inForce = new Set(
    rounds
      .filter((round) => round.supersededEpoch === null && round.status === "compacted")
      .map((round) => round.round),
  );
  const seen = new Set<number>();
  for (const row of messages) {
    // A row is listed once for each compaction that replaced it.
    if (seen.has(row.id)) yield violation(placeOf(row), "one round that replaced it", "another as well");
    seen.add(row.id);
    // An undone compaction holds its own summary.
    if (row.compactedRound === null || row.slot === `summary:${row.compactedRound}`) continue;
    if (row.supersededEpoch === null && !inForce.has(row.compactedRound))
      yield violation(
        placeOf(row),
        "in view: its round is not in force",
        `compacted by ${row.compactedRound}`,
      );
  }
  for (const round of inForce)
    if (!messages.some((row) => row.compactedRound === round))
      yield violation(`round ${round}`, "messages that it replaced", "none");
}
