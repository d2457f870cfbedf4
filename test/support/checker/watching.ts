/** I11: watchers see what is stored, and each stored answer, result and message was announced once. */
import { isDeepStrictEqual } from "node:util";
import { forkedAt, isClosed, metaOf, placeOf, type EventRow, type Evidence } from "./evidence.ts";
import { countsOf, type Violation, violationOf } from "./violation.ts";

export function checkWatching(evidence: Evidence): Violation[] {
  return [...seqs(evidence), ...announcements(evidence), ...leftovers(evidence), ...seen(evidence)];
}

const violation = violationOf("I11");

function seqs({ events, chunks, cursor }: Evidence): Violation[] {
  const all = [...events, ...chunks].map((row) => row.seq);
  const list = [...countsOf(all)]
    .filter(([, count]) => count > 1)
    .map(([seq, count]) => violation(`event ${seq}`, "one row", `${count}`));
  const last = Math.max(0, ...all);
  if (last > cursor.eventSeq) list.push(violation("events", `seqs up to ${cursor.eventSeq}`, `${last}`));
  return list;
}

/** Each row that watchers wait for has exactly one event. */
function announcements({ events, messages, calls }: Evidence): Violation[] {
  const responses = countsOf(events.filter((event) => event.type === "llm:response").map(stepOf));
  const dequeued = countsOf(
    events
      .filter((event) => event.type === "message:dequeued")
      .map((event) => `${event.epoch} ${(event.data as { ids: string[] }).ids.join()}`),
  );
  const list: Violation[] = [];
  const own = forkedAt({ messages });
  for (const row of messages.filter(({ sequence }) => sequence > own)) {
    const meta = metaOf(row);
    if (row.slot === "assistant")
      list.push(...once(responses.get(stepOf(row)), placeOf(row), "llm:response"));
    if (row.kind === "guidance")
      list.push(
        ...once(dequeued.get(`${row.epoch} ${(meta.ids ?? []).join()}`), placeOf(row), "message:dequeued"),
      );
  }
  for (const call of calls.filter(({ sequence }) => sequence > own)) {
    const mine = events.filter((event) => isResultOf(event, call));
    const where = `call ${call.step}.${call.index} (epoch ${call.epoch}, ${call.name})`;
    const count = mine.length;
    // Including results that the session's end stored.
    const must = call.status !== "pending" && call.status !== "running";
    if (count > 1 || (must && count === 0))
      list.push(violation(where, `${must ? "one" : "at most one"} llm:tool-result`, `${count}`));
  }
  return list;
}

function once(count: number | undefined, where: string, type: string): Violation[] {
  return count === 1 ? [] : [violation(where, `one ${type}`, `${count ?? 0}`)];
}

const stepOf = ({ epoch, step }: { readonly epoch: number; readonly step: number }) => `${epoch} ${step}`;

function isResultOf(event: EventRow, call: Evidence["calls"][number]): boolean {
  if (event.type !== "llm:tool-result" || event.step !== call.step) return false;
  const { callId, index } = event.data as { callId: string; index: number };
  if (callId !== call.callId || index !== call.index) return false;
  // A call that was pending when its line was abandoned runs under the new epoch with its old row.
  return event.epoch >= call.epoch && event.epoch < (call.supersededEpoch ?? Infinity);
}

/** Chunks of an answer are deleted when it is stored: remaining ones would be shown twice. */
function leftovers(evidence: Evidence): Violation[] {
  if (!isClosed(evidence)) return [];
  const answered = new Set(
    evidence.messages.filter((row) => row.slot === "assistant").map((row) => row.step),
  );
  return evidence.chunks
    .filter((chunk) => answered.has(chunk.step))
    .map((chunk) =>
      violation(`piece ${chunk.seq}`, `none of step ${chunk.step}, which is stored`, "a piece"),
    );
}

/** Chunks of finished steps are no longer in the log, so only events are compared. */
function seen({ events, watched }: Evidence): Violation[] {
  if (watched === undefined) return [];
  const list: Violation[] = [];
  const own = watched.filter((event) => event.type !== "llm:chunk");
  const stored = new Map(events.map((event) => [event.seq, event]));
  let last = 0;
  for (const { seq } of watched) {
    if (seq <= last) list.push(violation(`event ${seq}`, `one after ${last}`, "seen out of order, or twice"));
    last = Math.max(last, seq);
  }
  for (const event of own) {
    const row = stored.get(event.seq);
    if (row?.type !== event.type || !isDeepStrictEqual(row.data, event.data))
      list.push(violation(`event ${event.seq}`, `${row?.type ?? "none"} as it is stored`, event.type));
  }
  const received = new Set(own.map((event) => event.seq));
  for (const { seq, type } of events)
    if (!received.has(seq)) list.push(violation(`event ${seq}`, `${type}, as it is stored`, "not seen"));
  return list;
}
