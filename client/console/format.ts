/** Text, times and tables for a terminal. */
import { andMore, takeFirst } from "../../activities/text/lists.ts";
import { escapeHidden, showHidden } from "../../activities/text/clean.ts";
import { tokens, percent } from "../../activities/text/format.ts";

/** A bar of `width` cells; at least one is filled if the part is not zero. */
export function bar(part: number, whole: number, width = 10): string {
  const share = whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0;
  const full = part > 0 ? Math.max(1, Math.round(share * width)) : 0;
  return "█".repeat(full) + "░".repeat(width - full);
}

/** How full the model's window is. The only context percentage that we show. */
export function contextText(usedTokens: number, window: number): string {
  return `context ${bar(usedTokens, window)} ${percent(usedTokens, window)} of ${tokens(window)}`;
}

/** The parts without `false`, `null` and `undefined`. */
export function present<T>(...parts: readonly (T | false | null | undefined)[]): T[] {
  return parts.filter((part): part is T => part !== false && part !== null && part !== undefined);
}

/** A running clock: `0:07`, `12:40`, `1:02:03`. */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3_600);
  const minutes = Math.floor((seconds % 3_600) / 60);
  const tail = two(seconds % 60);
  return hours > 0 ? `${hours}:${two(minutes)}:${tail}` : `${minutes}:${tail}`;
}

/** A moment for people, in this machine's zone with its name: `22 Nov 2026, 10:15:00 UTC`. */
export function stamp(at: Date, timeZone?: string): string {
  return at.toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "short",
    timeZone,
  });
}

/** How long ago, for lists: `12 s ago`, `3 h ago`, `2 d ago`. */
export function ago(from: Date, now: Date): string {
  const seconds = Math.max(0, Math.round((now.getTime() - from.getTime()) / 1_000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** Whole escape sequences, and single characters that control a terminal. */
// oxlint-disable-next-line no-control-regex -- control characters are what this is about
const SEQUENCE = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/**
 * Text without escape sequences, bells and other control characters; line ends and
 * tabs stay. Characters that are invisible or reorder others are shown as codes. Output of a model or a command is not trusted.
 */
export function harmless(text: string): string {
  return showHidden(text.replace(SEQUENCE, "").replace(/\r\n?/g, "\n").replace(CONTROL, ""));
}

/** Like `harmless`, but keeps the escape sequences that set colours, for text with our own colours. */
export function steered(text: string): string {
  return (
    text
      // oxlint-disable-next-line no-control-regex
      .split(/(\u001b\[[\d;]{0,20}m)/)
      .map((part, at) => (at % 2 === 1 ? part : harmless(part)))
      .join("")
  );
}

/** Like `harmless`, but loses nothing: control characters are shown as codes, such as `\x1b`. */
export function visible(text: string): string {
  return showHidden(text).replace(
    CONTROL,
    (sign) => `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

/** The same JSON value, with the characters escaped that a terminal would interpret. */
export function harmlessJson(json: string): string {
  return escapeHidden(json).replace(
    CONTROL,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The text on one line, at most `max` characters, with an ellipsis if something was cut. */
export function harmlessLine(text: string, max: number): string {
  const flat = harmless(text).replace(/\s+/g, " ").trim();
  const points = Array.from(flat);
  return points.length <= max ? flat : `${points.slice(0, Math.max(0, max - 1)).join("")}…`;
}

/** The last lines of a text, each at most `columns` wide. */
export function lastLines(text: string, lines: number, columns: number): string[] {
  const all = harmless(text)
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "");
  return all.slice(-lines).map((line) => harmlessLine(line, columns));
}

/** Rows with aligned columns, two spaces apart. The last column gets the remaining width, but at least 20. */
export function table(rows: readonly (readonly string[])[], columns: number): string[] {
  const last = Math.max(0, ...rows.map(({ length }) => length - 1));
  const widths = Array.from({ length: last }, (_, at) =>
    Math.max(...rows.map((row) => row[at]?.length ?? 0)),
  );
  const room = Math.max(20, columns - widths.reduce((sum, width) => sum + width + 2, 0));
  return rows.map((row) =>
    row.map((cell, at) => (at === last ? harmlessLine(cell, room) : cell.padEnd(widths[at] ?? 0))).join("  "),
  );
}

const MAX_NAMES = 5;

/** The first names, and how many more there are. */
export function listNames(names: readonly string[]): string {
  const { shown, more } = takeFirst(names, MAX_NAMES);
  return `${shown.map((name) => harmlessLine(name, 120)).join(", ")}${andMore(more)}`;
}

/** Describes a tool call by its input: the command, the path …; else the whole input. */
export function firstString(input: Record<string, unknown>): string {
  for (const name of ["command", "path", "pattern", "query", "handle", "id", "reason", "question"]) {
    const value = input[name];
    if (typeof value === "string") return value;
  }
  return JSON.stringify(input);
}

/** Whether a shell reads it as it stands. */
export const isPlainWord = (text: string): boolean => /^[\w./@%+=:,-]*$/.test(text);

/** In single quotes, as one word of a command that can be pasted into a shell. */
export const quotedWord = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** The same, with quotes only where a shell needs them. Ids from Temporal and names of folders may be any text. */
export const shellWord = (text: string): string => (isPlainWord(text) ? text : quotedWord(text));

/** The fields that have a value: to spread over others without hiding those that no one gave. */
export const definedFields = <T extends object>(
  fields: T,
): { [Name in keyof T]?: Exclude<T[Name], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]?: Exclude<T[Name], undefined>;
  };
