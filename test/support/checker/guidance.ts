/** I4: every accepted message of a person is in the transcript once, in order, or is kept as undelivered. */
import { isClosed, lastStatus, liveRows, metaOf, placeOf, type Evidence } from "./evidence.ts";
import { countsOf, type Violation, violationOf } from "./violation.ts";

export function* checkGuidance(evidence: Evidence): Iterable<Violation> {
  const carried = liveRows(evidence).filter((row) => row.kind === "guidance");
  const delivered = carried.flatMap((row) => metaOf(row).ids ?? []);
  const counts = countsOf(delivered);
  for (const [id, count] of counts)
    if (count > 1) yield violation(`message ${id}`, "one delivery", `${count} deliveries`);
  const waiting = new Set(
    evidence.parked.filter((row) => row.deliveredSequence === null && !row.dropped).map((row) => row.id),
  );
  const dropped = new Set(evidence.parked.filter((row) => row.dropped).map((row) => row.id));
  for (const id of waiting)
    if (counts.has(id)) yield violation(`guidance ${id}`, "delivered, as the transcript says", "waiting");
  const accepted = acceptedIds(evidence);
  for (const id of accepted.owedIds)
    if (!counts.has(id) && !waiting.has(id) && !dropped.has(id))
      yield violation(`message ${id}`, "delivered or kept as undelivered", "neither");
  yield* inOrder(accepted.acceptedOrder, delivered);
  yield* parkedRows(evidence);
}

const violation = violationOf("I4");

/** A run that continues may hold messages in memory, and so may one that was ended from outside, until another follows. */
function acceptedIds(evidence: Evidence): { owedIds: Set<string>; acceptedOrder: string[] } {
  const acceptedOrder = new Set<string>();
  const owedIds = new Set<string>();
  for (const { accepted, status } of evidence.histories) {
    const isKept = status !== "TERMINATED" && status !== "TIMED_OUT" && status !== "RUNNING";
    const isFollowed = evidence.histories.at(-1)?.accepted !== accepted;
    for (const id of accepted) {
      acceptedOrder.add(id);
      if (isKept || isFollowed) owedIds.add(id);
    }
  }
  // The last run decides what is still on its way: it has to deliver what it was given.
  if (!isClosed(evidence) && lastStatus(evidence) !== undefined)
    return { owedIds: new Set(), acceptedOrder: [...acceptedOrder] };
  return { owedIds, acceptedOrder: [...acceptedOrder] };
}

function* inOrder(accepted: readonly string[], delivered: readonly string[]): Iterable<Violation> {
  const positions = new Map(accepted.map((id, index) => [id, index]));
  let last = -1;
  let before = "";
  for (const id of delivered) {
    const position = positions.get(id);
    if (position === undefined) continue;
    if (position < last)
      yield violation(
        `message ${id}`,
        `delivered before ${before}, as it was accepted`,
        "delivered after it",
      );
    last = Math.max(last, position);
    before = id;
  }
}

function* parkedRows({ parked, messages }: Evidence): Iterable<Violation> {
  for (const { id, deliveredSequence, dropped } of parked) {
    if (deliveredSequence === null || dropped) continue;
    const row = messages.find(({ sequence }) => sequence === deliveredSequence);
    if (row && row.supersededEpoch === null && (metaOf(row).ids ?? []).includes(id)) continue;
    const found = row ? `${placeOf(row)}, which does not carry it` : "no such message";
    yield violation(`guidance ${id}`, `carried by message ${deliveredSequence}`, found);
  }
}
