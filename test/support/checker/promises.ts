/**
 * I13: a wait ends once, with one reason; the end of a command in the background is told at most once; a command of `verify` has one
 * outcome a round; and money is counted once, with nothing left reserved.
 */
import { isClosed, forkedAt, liveRows, resultOf, type Evidence, type WaitRow } from "./evidence.ts";
import { countsOf, type Violation, violationOf } from "./violation.ts";

const violation = violationOf("I13");

export function* checkPromises(evidence: Evidence): Iterable<Violation> {
  yield* waits(evidence);
  yield* backgroundEnds(evidence);
  yield* verifications(evidence);
  yield* money(evidence);
}

/** Rows that no wait stands behind, or that a run closed with itself: they have no event of an end. */
const WITHOUT_END: readonly (string | null)[] = ["warned", "cancelled", "ended", null];

const placeOf = ({ epoch, step, callIndex }: WaitRow): string => `wait ${epoch}.${step}.${callIndex}`;

function* waits({ waits: rows, events, histories }: Evidence): Iterable<Violation> {
  const eventsOf = (type: string, { epoch, step }: WaitRow) =>
    events.filter((event) => event.type === type && event.epoch === epoch && event.step === step);
  for (const row of rows) {
    const { how, endedAt, supersededEpoch } = row;
    if (isClosed({ histories }) && supersededEpoch === null && endedAt === null)
      yield violation(placeOf(row), "an end, since the run is closed", "none");
    if ((how === null) !== (endedAt === null))
      yield violation(placeOf(row), "an end with its reason", `${how} at ${endedAt?.toISOString()}`);
    if (how === "warned") continue;
    // A step has one wait.
    const begun = eventsOf("wait:started", row).length;
    if (begun !== 1) yield violation(placeOf(row), "one wait:started", `${begun}`);
    const ends = eventsOf("wait:ended", row).map(({ data }) => (data as { how: string }).how);
    const expected = WITHOUT_END.includes(how) ? "" : `${how}`;
    if (ends.join() !== expected)
      yield violation(
        placeOf(row),
        expected === "" ? "no wait:ended" : `one wait:ended: ${how}`,
        ends.join(),
      );
  }
}

/** As the model is told: `s3c0 (npm test) ended with exit code 1`, at a line's begin or behind `Waited 4 min: `. */
const TOLD =
  /(?:^|: )(s\d+c\d+)(?: \(.*?\))? (?:ended with exit code|was ended by|is gone with its sandbox)/gm;

function* backgroundEnds(evidence: Evidence): Iterable<Violation> {
  const { events } = evidence;
  const ended = events.filter(({ type }) => type === "process:ended");
  const keys = ended.map(({ epoch, data }) => `${(data as { id: string }).id} in epoch ${epoch}`);
  for (const [key, count] of countsOf(keys))
    if (count > 1) yield violation(`command ${key}`, "one process:ended", `${count}`);
  const texts = liveRows(evidence).map((row) => {
    if (row.kind === "notice") return (row.content as { text?: string }[])[0]?.text ?? "";
    const result = resultOf(row);
    return result?.toolName === "wait" ? result.text : "";
  });
  const told = texts.flatMap((text) => [...text.matchAll(TOLD)].map(([, id]) => id ?? ""));
  for (const [id, count] of countsOf(told))
    if (count > 1) yield violation(`command ${id}`, "its end told once", `${count} times`);
}

function* verifications({ verifications: rows, events }: Evidence): Iterable<Violation> {
  const ended = events.filter(({ type }) => type === "verify:ended").length;
  if (ended !== rows.length) yield violation("verifications", `${rows.length} verify:ended`, `${ended}`);
}

function* money(evidence: Evidence): Iterable<Violation> {
  const { bills, spent, reserved, session } = evidence;
  if (isClosed(evidence) && reserved > 0)
    yield violation(`session ${session.id}`, "no reserved money, since the run is closed", `${reserved}`);
  // Spending outlives what a purge removes, and a fork's own begins with it.
  if (spent === undefined || forkedAt(evidence) > 0) return;
  const cost = bills.reduce((sum, bill) => sum + (bill.costUsd ?? 0), 0);
  if (spent.calls !== bills.length || Math.abs(spent.costUsd - cost) > 1e-9)
    yield violation("spending", figures(bills.length, cost), figures(spent.calls, spent.costUsd));
}

const figures = (calls: number, costUsd: number): string => `${calls} calls for ${costUsd} USD`;
