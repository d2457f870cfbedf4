/** Formats a line of the worker's JSON log for a person. */
import { cutChars } from "../../activities/contract/cut-text.ts";

/** Of pino, whose levels are numbers. */
const WARN = 40;
const ERROR = 50;
const MAX_FIELD_CHARS = 200;
/** Fields that are the same in every line. */
const USUAL = new Set(["level", "time", "pid", "hostname", "name", "msg", "from"]);

/** Such as `10:02:07  warning: Postgres does not answer  attempt 3`; what is not JSON stays as it is. */
export function readableLine(line: string): string {
  let entry: Record<string, unknown>;
  try {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed !== "object" || parsed === null) return line;
    entry = parsed as Record<string, unknown>;
  } catch {
    return line;
  }
  const level = Number(entry["level"]);
  const lesser = level >= WARN ? "warning: " : "";
  const kind = level >= ERROR ? "error: " : lesser;
  const time = new Date(String(entry["time"]));
  const clock = Number.isNaN(time.getTime()) ? "" : `${time.toTimeString().slice(0, 8)}  `;
  const fields = Object.entries(entry)
    .filter(([name]) => !USUAL.has(name))
    .map(([name, value]) => `  ${name} ${cutChars(wordsOf(value), MAX_FIELD_CHARS)}`);
  return `${clock}${kind}${wordsOf(entry["msg"])}${fields.join("")}`;
}

function wordsOf(value: unknown): string {
  if (typeof value === "string") return value;
  const { message } = (value ?? {}) as { message?: unknown };
  return typeof message === "string" ? message : (JSON.stringify(value) ?? "");
}
