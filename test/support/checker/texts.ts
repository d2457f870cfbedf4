/** I10: no secret anywhere, every stored text well-formed and free of NUL, nothing big in Temporal's history. */
import type { Evidence } from "./evidence.ts";
import { type Violation, violationOf } from "./violation.ts";

/** Source: requirement 2.1. */
const MAX_PAYLOAD_BYTES = 64 * 1024;

export function checkTexts(evidence: Evidence): Violation[] {
  const spellings = evidence.canaries.flatMap(spellingsOf);
  const list: Violation[] = [];
  const secret = (where: string, text: string) => {
    if (spellings.some((spelling) => text.includes(spelling)))
      list.push(violation(where, "no secret", "one of the canaries"));
  };
  for (const [where, value] of stored(evidence)) {
    secret(where, JSON.stringify(value));
    const fault = faultIn(value);
    if (fault !== undefined) list.push(violation(where, "well-formed text", fault));
  }
  for (const history of evidence.histories) {
    secret(`history of run ${history.runId}`, history.text);
    if (history.largestPayload > MAX_PAYLOAD_BYTES)
      list.push(
        violation(
          `history of run ${history.runId}`,
          `payloads up to ${MAX_PAYLOAD_BYTES} bytes`,
          `${history.largestPayload}`,
        ),
      );
  }
  for (const [index, entry] of (evidence.served ?? []).entries())
    if (entry.request) secret(`request ${index + 1}`, JSON.stringify(entry.request.raw));
  return list;
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
  for (const each of Object.values(value)) {
    const fault = faultIn(each);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
