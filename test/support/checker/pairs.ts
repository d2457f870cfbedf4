/** I2: each call has exactly one result under its answer, the ledger agrees, and no request was refused. */
import {
  callIdsOf,
  isClosed,
  liveRows,
  placeOf,
  resultOf,
  type CallRow,
  type Evidence,
  type MessageRow,
} from "./evidence.ts";
import { type Violation, violationOf } from "./violation.ts";

export function* checkPairs(evidence: Evidence): Iterable<Violation> {
  yield* transcript(evidence);
  yield* ledger(evidence);
  yield* refusals(evidence);
}

const violation = violationOf("I2");

/** The transcript alone: after an answer with calls come their results, in call order, before anything else. */
function* transcript(evidence: Evidence): Iterable<Violation> {
  const rows = liveRows(evidence).filter((row) => row.kind !== "summary");
  const [first] = rows;
  if (first && first.role !== "user") yield violation(placeOf(first), "the task first", first.role);
  for (const [index, row] of rows.entries()) {
    if (row.role !== "assistant") continue;
    const due = callIdsOf(row);
    const next = rows.slice(index + 1).findIndex(({ role }) => role !== "tool");
    const results = rows.slice(index + 1, next === -1 ? undefined : index + 1 + next);
    const open = next === -1 && !isClosed(evidence);
    yield* resultsUnder(row, due, results, open);
  }
  const leading = rows.findIndex((row) => row.role !== "tool" && row.role !== "user");
  for (const row of rows.slice(0, Math.max(0, leading)))
    if (row.role === "tool") yield violation(placeOf(row), "an answer before it", "none");
}

function* resultsUnder(
  answer: MessageRow,
  due: readonly string[],
  results: readonly MessageRow[],
  open: boolean,
): Iterable<Violation> {
  const ids = results.map((row) => resultOf(row)?.toolCallId ?? "");
  // Calls that were repeated after a reset have later sequences than the others.
  const again = results.some((row) => row.epoch !== answer.epoch);
  const [a, b] = again ? [due.toSorted(), ids.toSorted()] : [due, ids];
  const fits = open ? b.every((id) => a.includes(id)) && new Set(b).size === b.length : a.join() === b.join();
  if (!fits)
    yield violation(placeOf(answer), `results of [${due.join(", ")}]`, `results of [${ids.join(", ")}]`);
}

function* ledger(evidence: Evidence): Iterable<Violation> {
  const live = evidence.calls.filter((call) => call.supersededEpoch === null);
  const bySequence = new Map(liveRows(evidence).map((row) => [row.sequence, row]));
  const keys = new Set(live.map((call) => `${call.step} ${call.index} ${call.callId}`));
  for (const row of liveRows(evidence)) {
    for (const [index, id] of callIdsOf(row).entries())
      if (!keys.has(`${row.step} ${index} ${id}`))
        yield violation(placeOf(row), `a ledger row of call ${index} (${id})`, "none");
    if (row.role === "tool" && !live.some((call) => call.sequence === row.sequence))
      yield violation(placeOf(row), "a ledger row that set its sequence aside", "none");
  }
  for (const call of live) {
    const where = `call ${call.step}.${call.index} (epoch ${call.epoch}, ${call.name})`;
    const result = bySequence.get(call.sequence);
    if (isOpen(call)) {
      if (result) yield violation(where, "no result while it is open", placeOf(result));
      if (isClosed(evidence)) yield violation(where, "an end, since the run is closed", call.status);
      continue;
    }
    const part = result && resultOf(result);
    if (part?.toolCallId !== call.callId)
      yield violation(where, `its result at sequence ${call.sequence}`, part?.toolCallId ?? "none");
    else if (part.outcome !== call.status)
      yield violation(where, `a result that says ${call.status}`, part.outcome);
  }
}

function isOpen(call: CallRow): boolean {
  return call.status === "pending" || call.status === "running";
}

/** The server refuses what a provider would; a window smaller than configured is not the transcript's fault. */
function* refusals({ served = [] }: Evidence): Iterable<Violation> {
  for (const [index, { refused, status }] of served.entries()) {
    const isFault = refused !== undefined && (status === 400 || status === 413);
    if (isFault && !/context window|maximum context length/.test(refused))
      yield violation(`request ${index + 1}`, "a request the provider takes", `${status}: ${refused}`);
  }
}
