/** I1: message sequences are 1..n without hole or duplicate, one answer a step, and no step is missing. */
import {
  forkedAt,
  isClosed,
  liveRows,
  missingSteps,
  placeOf,
  type Evidence,
  type MessageRow,
} from "./evidence.ts";
import { countsOf, type Violation, violationOf } from "./violation.ts";

export function* checkSequences(evidence: Evidence): Iterable<Violation> {
  yield* holes(evidence);
  yield* duplicates(evidence);
  yield* inSequence(evidence);
  yield* steps(evidence);
}

const violation = violationOf("I1");

/** Every assigned sequence is a message, or is reserved for a call without a result. */
function* holes(evidence: Evidence): Iterable<Violation> {
  const filled = new Set(evidence.messages.map((row) => row.sequence));
  const closed = isClosed(evidence);
  const setAside = new Set(
    evidence.calls.filter((call) => call.supersededEpoch !== null || !closed).map((call) => call.sequence),
  );
  for (let sequence = forkedAt(evidence) + 1; sequence <= evidence.cursor.messageSequence; sequence += 1) {
    if (!filled.has(sequence) && !setAside.has(sequence))
      yield violation("messages", `a message with sequence ${sequence}`, "a hole");
  }
  for (const sequence of filled)
    if (sequence > evidence.cursor.messageSequence)
      yield violation("messages", `sequences up to ${evidence.cursor.messageSequence}`, `${sequence}`);
}

function* duplicates({ messages }: Evidence): Iterable<Violation> {
  for (const [sequence, count] of countsOf(messages.map((row) => row.sequence)))
    if (count > 1) yield violation("messages", `one row with sequence ${sequence}`, `${count} rows`);
  const live = liveRows({ messages });
  for (const [slot, count] of countsOf(live.map((row) => `step ${row.step}, ${row.slot}`)))
    if (count > 1) yield violation("messages", `one live row of ${slot}`, `${count} rows`);
}

function* inSequence({ messages, session }: Evidence): Iterable<Violation> {
  let before: MessageRow | undefined;
  for (const row of liveRows({ messages })) {
    if (row.epoch > session.epoch)
      yield violation(placeOf(row), `an epoch up to ${session.epoch}`, `${row.epoch}`);
    if (row.kind === "summary") continue;
    if (row.position !== row.sequence)
      yield violation(placeOf(row), "a position that is its sequence", `${row.position}`);
    // Results of a step that was reset in its middle are stored again under a later epoch.
    if (before && row.step < before.step && row.epoch === before.epoch)
      yield violation(placeOf(row), `a step from ${before.step} on`, `step ${row.step}`);
    before = row;
  }
}

/** A step without an answer was stopped before its first token: its request is billed as wasted. */
function* steps({ messages, bills, events }: Evidence): Iterable<Violation> {
  const answered = new Set(
    liveRows({ messages })
      .filter((row) => row.slot === "assistant")
      .map((row) => row.step),
  );
  const missing = missingSteps({ events });
  const last = Math.max(0, ...answered);
  const forked = messages.find((row) => row.sequence === forkedAt({ messages }));
  for (let step = Math.max(1, forked?.step ?? 1); step < last; step += 1) {
    const stopped = bills.some((bill) => bill.step === step && bill.status === "wasted");
    if (!answered.has(step) && !stopped && !missing.has(step))
      yield violation("messages", `an answer of step ${step}`, "none, and no request that was stopped");
  }
}
