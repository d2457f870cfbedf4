/** I10: no secret anywhere, every stored text well-formed and free of NUL, nothing big in Temporal's history. */
import type { Evidence } from "./evidence.ts";
import { type Violation, violationOf } from "./violation.ts";

/** Source: requirement 2.1. */
const MAX_PAYLOAD_BYTES = 64 * 1024;

export function* checkTexts(evidence: Evidence): Iterable<Violation> {
  const spellings = evidence.canaries.flatMap(spellingsOf);
  function* secret(where: string, text: string): Iterable<Violation> {
    if (spellings.some((spelling) => text.includes(spelling)))
      yield violation(where, "no secret", "one of the canaries");
  }
  for (const [where, value] of stored(evidence)) {
    yield* secret(where, JSON.stringify(value));
    const fault = faultIn(value);
    if (fault !== undefined) yield violation(where, "well-formed text", fault);
  }
  for (const { runId, text, largestPayload } of evidence.histories) {
    yield* secret(`history of run ${runId}`, text);
    if (largestPayload > MAX_PAYLOAD_BYTES)
      yield violation(
        `history of run ${runId}`,
        `payloads up to ${MAX_PAYLOAD_BYTES} bytes`,
        `${largestPayload}`,
      );
  }
  for (const [index, entry] of (evidence.served ?? []).entries())
    if (entry.request) yield* secret(`request ${index + 1}`, JSON.stringify(entry.request.raw));
}

const violation = violationOf("I10");

function stored(evidence: Evidence): [string, unknown][] {
  const tables = {
    messages: evidence.messages,
    events: evidence.events,
    stream_chunks: evidence.chunks,
    compaction_events: evidence.rounds,
    model_calls: evidence.bills,
    guidance: evidence.parked,
    tool_calls: evidence.calls,
  };
  const rows = Object.entries(tables).flatMap(([table, list]) =>
    list.map((row, index): [string, unknown] => [`${table}, row ${index + 1}`, row]),
  );
  return [["sessions", evidence.session], ...rows];
}

/** The value itself, and the encodings that tools print. */
function spellingsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [secret, bytes.toString("base64").replace(/=+$/, ""), bytes.toString("hex")];
}

function faultIn(value: unknown): string | undefined {
  if (typeof value === "string") {
    if (!value.isWellFormed()) return `a lone surrogate in ${JSON.stringify(value.slice(0, 80))}`;
    return value.includes("\0") ? `a NUL in ${JSON.stringify(value.slice(0, 80))}` : undefined;
  }
  if (typeof value !== "object" || value === null || value instanceof Date) return undefined;
  return Object.values(value)
    .map(faultIn)
    .find((fault) => fault !== undefined);
}
