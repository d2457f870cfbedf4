/** I4: every accepted message of a person is in the transcript once, in order, or is kept as undelivered. */
import { isClosed, lastStatus, liveRows, metaOf, placeOf, type Evidence } from "./evidence.ts";
import { countsOf, type Violation, violationOf } from "./violation.ts";

export function checkGuidance(evidence: Evidence): Violation[] {
  const carried = liveRows(evidence).filter((row) => row.kind === "guidance");
  const delivered = carried.flatMap((row) => metaOf(row).ids ?? []);
  const counts = countsOf(delivered);
  const list: Violation[] = [];
  for (const [id, count] of counts)
    if (count > 1) list.push(violation(`message ${id}`, "one delivery", `${count} deliveries`));
  const waiting = new Set(
    evidence.parked.filter((row) => row.deliveredSequence === null && !row.dropped).map((row) => row.id),
  );
  const dropped = new Set(evidence.parked.filter((row) => row.dropped).map((row) => row.id));
  for (const id of waiting)
    if (counts.has(id))
      list.push(violation(`guidance ${id}`, "delivered, as the transcript says", "waiting"));
  const accepted = acceptedIds(evidence);
  for (const id of accepted.owed)
    if (!counts.has(id) && !waiting.has(id) && !dropped.has(id))
      list.push(violation(`message ${id}`, "delivered or kept as undelivered", "neither"));
  list.push(...inOrder(accepted.order, delivered), ...parkedRows(evidence));
  return list;
}

const violation = violationOf("I4");

/** A run that continues may hold messages in memory, and so may one that was ended from outside, until another follows. */
function acceptedIds(evidence: Evidence): { owed: Set<string>; order: string[] } {
  const order = new Set<string>();
  const owed = new Set<string>();
  for (const { accepted, status } of evidence.histories) {
    const isKept = status !== "TERMINATED" && status !== "TIMED_OUT" && status !== "RUNNING";
    const isFollowed = evidence.histories.at(-1)?.accepted !== accepted;
    for (const { id } of accepted) {
      order.add(id);
      if (isKept || isFollowed) owed.add(id);
    }
  }
  // The last run decides what is still on its way: it has to deliver what it was given.
  if (!isClosed(evidence) && lastStatus(evidence) !== undefined)
    return { owed: new Set(), order: [...order] };
  return { owed, order: [...order] };
}

function inOrder(accepted: readonly string[], delivered: readonly string[]): Violation[] {
  const known = new Map(accepted.map((id, place) => [id, place]));
  const list: Violation[] = [];
  let last = -1;
  let before = "";
  for (const id of delivered) {
    const place = known.get(id);
    if (place === undefined) continue;
    if (place < last)
      list.push(
        violation(`message ${id}`, `delivered before ${before}, as it was accepted`, "delivered after it"),
      );
    last = Math.max(last, place);
    before = id;
  }
  return list;
}

function parkedRows({ parked, messages }: Evidence): Violation[] {
  return parked.flatMap(({ id, deliveredSequence, dropped }) => {
    if (deliveredSequence === null || dropped) return [];
    const row = messages.find((each) => each.sequence === deliveredSequence);
    if (row && row.supersededEpoch === null && (metaOf(row).ids ?? []).includes(id)) return [];
    const found = row ? `${placeOf(row)}, which does not carry it` : "no such message";
    return [violation(`guidance ${id}`, `carried by message ${deliveredSequence}`, found)];
  });
}
