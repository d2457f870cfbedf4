/**
 * I3: a command that changes something ran at most once. Commands such as `echo <mark> >> <name>.marks` append a line
 * each time they run; a mark belongs to one call.
 */
import type { AssistantPart } from "../../../activities/contract/message.ts";
import { liveRows, type Evidence } from "./evidence.ts";
import { countsOf, type Violation, violationOf } from "./violation.ts";

const MARK = /echo ([\w.:-]+) >> ([\w./-]+\.marks)/g;

interface MarkedCall {
  readonly mark: string;
  readonly file: string;
  readonly status: string;
  readonly where: string;
  readonly finishedAt: Date | null;
}

export function* checkMarks(evidence: Evidence): Iterable<Violation> {
  const { marks } = evidence;
  if (marks === undefined) return;
  const markCalls = markedCalls(evidence);
  const isRestored = evidence.events.some(({ type }) => type === "record:missing");
  for (const [file, lines] of marks) {
    for (const [mark, count] of countsOf(lines)) {
      const calls = markCalls.filter((call) => call.mark === mark && call.file === file);
      // A delegate begins with its parent's files, so marks of none of its own calls are its parent's.
      if (calls.length === 0 && evidence.session.parentId !== null) continue;
      // The call's rows are missing, and it ran once.
      if (calls.length === 0 && count === 1 && isRestored) continue;
      if (count > calls.length)
        yield violation(`${file}: ${mark}`, `at most ${calls.length} (its calls)`, `${count} lines`);
    }
  }
  for (const call of markCalls) {
    if (call.status !== "completed" || isForgotten(evidence, call)) continue;
    const count = (marks.get(call.file) ?? []).filter((line) => line === call.mark).length;
    if (count === 0) yield violation(call.where, `its line ${call.mark} in ${call.file}`, "no line");
  }
}

const violation = violationOf("I3");

function markedCalls({ messages, calls }: Evidence): MarkedCall[] {
  return liveRows({ messages }).flatMap((row) => {
    if (row.role !== "assistant") return [];
    const parts = (row.content as AssistantPart[]).filter((part) => part.type === "tool-call");
    return parts.flatMap((part, index) => {
      const call = calls.find(
        (entry) => entry.supersededEpoch === null && entry.step === row.step && entry.index === index,
      );
      const where = `call ${row.step}.${index} (${part.toolName})`;
      const { status, finishedAt } = call ?? { status: "missing", finishedAt: null };
      return [...JSON.stringify(part.input).matchAll(MARK)].map(([, mark = "", file = ""]): MarkedCall => ({
        mark,
        file,
        status,
        where,
        finishedAt,
      }));
    });
  });
}

/** A sandbox that lost its volume is restored from the last save: what a call wrote after that save is gone, and reported. */
function isForgotten({ events }: Evidence, { finishedAt }: MarkedCall): boolean {
  return events.some(
    ({ type, data, at }) =>
      type === "sandbox:created" &&
      (data as { workspace?: string }).workspace !== "adopted" &&
      (finishedAt === null || at > finishedAt),
  );
}
