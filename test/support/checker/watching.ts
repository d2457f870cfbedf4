/** I11: watchers see what is stored, each stored answer, result and message was announced once, and events have their schema. */
import { isDeepStrictEqual } from "node:util";
import { eventData } from "../../../activities/store/event-data.ts";
import type { EventType } from "../../../activities/store/event.ts";
import { forkedAt, isClosed, metaOf, placeOf, type EventRow, type Evidence } from "./evidence.ts";
import { countsOf, type Violation, violationOf } from "./violation.ts";

export function* checkWatching(evidence: Evidence): Iterable<Violation> {
  yield* seqs(evidence);
  yield* announcements(evidence);
  yield* leftovers(evidence);
  yield* seen(evidence);
  yield* shapes(evidence);
}

const violation = violationOf("I11");

function* seqs({ events, chunks, cursor }: Evidence): Iterable<Violation> {
  const all = [...events, ...chunks].map((row) => row.seq);
  for (const [seq, count] of countsOf(all))
    if (count > 1) yield violation(`event ${seq}`, "one row", `${count}`);
  const last = Math.max(0, ...all);
  if (last > cursor.eventSeq) yield violation("events", `seqs up to ${cursor.eventSeq}`, `${last}`);
}

/** Each row that watchers wait for has exactly one event. */
function* announcements({ events, messages, calls }: Evidence): Iterable<Violation> {
  const responses = countsOf(events.filter((event) => event.type === "llm:response").map(stepOf));
  const dequeued = countsOf(
    events
      .filter((event) => event.type === "message:dequeued")
      .map((event) => `${event.epoch} ${(event.data as { ids: string[] }).ids.join()}`),
  );
  const forkSequence = forkedAt({ messages });
  for (const row of messages.filter(({ sequence }) => sequence > forkSequence)) {
    const meta = metaOf(row);
    if (row.slot === "assistant") yield* once(responses.get(stepOf(row)), placeOf(row), "llm:response");
    if (row.kind === "guidance")
      yield* once(dequeued.get(`${row.epoch} ${(meta.ids ?? []).join()}`), placeOf(row), "message:dequeued");
  }
  for (const call of calls.filter(({ sequence }) => sequence > forkSequence)) {
    const count = events.filter((event) => isResultOf(event, call, calls)).length;
    const where = `call ${call.step}.${call.index} (epoch ${call.epoch}, ${call.name})`;
    // Including results that the session's end stored.
    const must = call.status !== "pending" && call.status !== "running";
    if (count > 1 || (must && count === 0))
      yield violation(where, `${must ? "one" : "at most one"} llm:tool-result`, `${count}`);
  }
}

function* once(count = 0, where: string, type: string): Iterable<Violation> {
  if (count !== 1) yield violation(where, `one ${type}`, `${count}`);
}

const stepOf = ({ epoch, step }: { readonly epoch: number; readonly step: number }) => `${epoch} ${step}`;

type Call = Evidence["calls"][number];

function isResultOf(event: EventRow, call: Call, calls: readonly Call[]): boolean {
  if (event.type !== "llm:tool-result" || event.step !== call.step) return false;
  const { callId, index } = event.data as { callId: string; index: number };
  if (callId !== call.callId || index !== call.index) return false;
  // A call that was pending when its line was left runs under the new epoch with its old row, unless it has a row there.
  const isSame = (other: Call) =>
    other.step === call.step && other.index === index && other.callId === callId;
  const epochs = calls.filter(isSame).map((other) => other.epoch);
  return call.epoch === Math.max(...epochs.filter((epoch) => epoch <= event.epoch));
}

/** Chunks of an answer are deleted when it is stored: remaining ones would be shown twice. */
function* leftovers(evidence: Evidence): Iterable<Violation> {
  if (!isClosed(evidence)) return;
  const answered = new Set(
    evidence.messages.filter((row) => row.slot === "assistant").map((row) => row.step),
  );
  for (const { seq, step } of evidence.chunks)
    if (answered.has(step))
      yield violation(`piece ${seq}`, `none of step ${step}, which is stored`, "a piece");
}

/** Chunks of finished steps are no longer in the log, so only events are compared. */
function* seen({ events, watched }: Evidence): Iterable<Violation> {
  if (watched === undefined) return;
  const storedKinds = watched.filter((event) => event.type !== "llm:chunk");
  const stored = new Map(events.map((event) => [event.seq, event]));
  let last = 0;
  for (const { seq } of watched) {
    if (seq <= last) yield violation(`event ${seq}`, `one after ${last}`, "seen out of order, or twice");
    last = Math.max(last, seq);
  }
  for (const event of storedKinds) {
    const row = stored.get(event.seq);
    if (row?.type !== event.type || !isDeepStrictEqual(row.data, event.data))
      yield violation(`event ${event.seq}`, `${row?.type ?? "none"} as it is stored`, event.type);
  }
  const received = new Set(storedKinds.map((event) => event.seq));
  for (const { seq, type } of events)
    if (!received.has(seq)) yield violation(`event ${seq}`, `${type}, as it is stored`, "not seen");
}

/** Every event matches its schema and has no other field. */
function* shapes({ events }: Evidence): Iterable<Violation> {
  for (const { seq, type, data } of events) {
    if (!Object.hasOwn(eventData, type)) yield violation(`event ${seq}`, "a known type", type);
    const { error } = eventData[type as EventType]?.safeParse(data) ?? {};
    if (error !== undefined) yield violation(`event ${seq}`, `${type} by its schema`, error.message);
  }
}
