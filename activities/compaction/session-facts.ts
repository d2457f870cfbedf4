/** What code reads from a transcript without a model, for a summary: files, open items, errors, rules read, what was said. */
import { toObject } from "../text/json.ts";
import type { StoredMessage, ToolCallPart, ToolResultPart } from "../contract/message.ts";
import { excerpt, type ChecklistItem, type FileNote } from "./summary-document.ts";
import { cutChars } from "../text/cut.ts";

interface Call {
  readonly call: ToolCallPart;
  readonly result: ToolResultPart | undefined;
}

/** The calls of these rows with their results, in order. If an id occurs twice, its result belongs to the newest call. */
export function callsIn(rows: readonly StoredMessage[]): Call[] {
  const calls: { call: ToolCallPart; result: ToolResultPart | undefined }[] = [];
  const newest = new Map<string, (typeof calls)[number]>();
  for (const row of rows) {
    if (row.role === "assistant") {
      for (const part of row.content) {
        if (part.type !== "tool-call") continue;
        const entry = { call: part, result: undefined };
        calls.push(entry);
        newest.set(part.toolCallId, entry);
      }
    } else if (row.role === "tool") {
      const entry = newest.get(row.content[0].toolCallId);
      if (entry !== undefined) entry.result ??= row.content[0];
    }
  }
  return calls;
}

/** Files that completed calls changed, each once with its last action, in the order of first change. */
export function filesIn(rows: readonly StoredMessage[]): FileNote[] {
  const files = new Map<string, FileNote>();
  for (const { call, result } of callsIn(rows)) {
    if (result?.outcome !== "completed") continue;
    for (const entry of changesOf(call)) {
      const action =
        entry.action === "edited" && files.get(entry.path)?.action === "written" ? "written" : entry.action;
      files.set(entry.path, { ...entry, action });
    }
  }
  return [...files.values()];
}

function changesOf(call: ToolCallPart): FileNote[] {
  const input = toObject(call.input);
  const path = pathOf(call);
  const entry = (action: string, description: string) => (path === "" ? [] : [{ path, action, description }]);
  switch (call.toolName) {
    case "write_file":
      return entry("written", `${lineCount(input["content"])} lines`);
    case "edit_file":
      return entry("edited", excerpt(wordsOf(input["new_string"]).replaceAll(/\s+/g, " "), 60));
    case "apply_patch":
      return patchedFiles(wordsOf(input["patch"]));
    default:
      return [];
  }
}

const PATCH_ACTIONS: Readonly<Record<string, string>> = {
  Add: "written",
  Update: "edited",
  Delete: "deleted",
};

function patchedFiles(patch: string): FileNote[] {
  return [...patch.matchAll(/^\*\*\* (?:(Add|Update|Delete) File|Move to): (.+)$/gm)].map((match) => ({
    path: relative((match[2] ?? "").trim()),
    action: PATCH_ACTIONS[match[1] ?? ""] ?? "moved here",
    description: "",
  }));
}

/** Items of the newest `todo` call; undefined if there was none. */
export function todoIn(rows: readonly StoredMessage[]): ChecklistItem[] | undefined {
  const call = callsIn(rows).findLast(({ call }) => call.toolName === "todo")?.call;
  const items = toObject(call?.input)["items"];
  if (!Array.isArray(items)) return undefined;
  return items.flatMap((item: unknown) => {
    if (typeof item === "string") return [{ text: item, done: false }];
    const fields = toObject(item);
    const text = ["text", "content", "title", "task"]
      .map((name) => fields[name])
      .find((value) => typeof value === "string");
    const status = wordsOf(fields["status"]);
    return typeof text === "string"
      ? [{ text, done: fields["done"] === true || /^(done|completed|cancelled)$/.test(status) }]
      : [];
  });
}

/** The newest failed calls, one line each. */
export function errorsIn(rows: readonly StoredMessage[], limit: number): string[] {
  return callsIn(rows)
    .filter(({ result }) => result !== undefined && result.outcome !== "completed")
    .slice(-limit)
    .map(({ call, result }) => {
      const about = excerpt(aboutOf(call).replaceAll(/\s+/g, " "), 60);
      const summary = excerpt((result?.text ?? "").replaceAll(/\s+/g, " "), 160);
      return `- ${call.toolName} ${about}: ${result?.outcome}: ${summary}`;
    });
}

function aboutOf(call: ToolCallPart): string {
  const input = toObject(call.input);
  return wordsOf(input["command"] ?? input["path"] ?? input["pattern"]);
}

/** Text of a message, its parts joined. */
export function messageText(row: StoredMessage): string {
  if (row.role === "tool") return row.content[0].text;
  return row.content
    .flatMap((part) => {
      if (part.type === "text") return [part.text];
      return part.type === "file" ? [`[${part.mediaType}]`] : [];
    })
    .filter((text) => text !== "")
    .join("\n");
}

function wordsOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The path that a call names, relative to the workspace; empty if it names none. */
const pathOf = ({ input }: ToolCallPart): string => relative(wordsOf(toObject(input)["path"]));

function relative(path: string): string {
  return path.replace(/^\/workspace\//, "").replace(/^\.\//, "");
}

function lineCount(content: unknown): number {
  return typeof content === "string" ? content.split("\n").length : 0;
}

/**
 * A summary's list of the project instructions and skills that the session has read, by name, so that they can be
 * read again.
 */
const FOLDERS = "- Standing rules of the project's folders (read the file again before work there): ";
const SKILLS = "- Skills in use (read the file again before such work goes on): ";

/** Chosen: some 500 tokens; if there are more, the newest are kept. */
const MAX_LIST_CHARS = 2_000;

/** @param before this section of the summary that is incorporated */
export function standingRules(rows: readonly StoredMessage[], before: string): string[] {
  const notes = rows.flatMap((row) => row.notes ?? []);
  const skills = callsIn(rows)
    .filter(({ call, result }) => call.toolName === "read_file" && result?.outcome === "completed")
    .map(({ call }) => pathOf(call))
    .filter((path) => path.endsWith("/SKILL.md") && !path.includes(","));
  return [list(FOLDERS, before, notes), list(SKILLS, before, skills)].filter((line) => line !== "");
}

/** Whether a line is one of these, which are regenerated for each summary. */
export const isStandingRule = (line: string): boolean => line.startsWith(FOLDERS) || line.startsWith(SKILLS);

function list(prefix: string, before: string, paths: readonly string[]): string {
  const line = before.split("\n").find((text) => text.startsWith(prefix));
  const listed = line === undefined ? [] : line.slice(prefix.length).split(", ");
  const all = [...new Set([...listed, ...paths])];
  while (all.join(", ").length > MAX_LIST_CHARS) all.shift();
  return all.length === 0 ? "" : `${prefix}${all.join(", ")}`;
}

/** Excerpts of user messages that are no longer shown verbatim: lines of a summary's first section. */
export const SAID_HEADER = "Said later by the user, oldest first:";

/** Longest line of a message that is not the newest. */
const SAID_CHARS = 300;
/** The newest message is the agent's current task: if it was too long to keep, its line gets this share of the room. */
const NEWEST_SHARE = 0.6;

/** The excerpt lines of a section. */
export function parseSaid(originalTask: string): string[] {
  const [, list = ""] = originalTask.split(`${SAID_HEADER}\n`);
  return list.split("\n").flatMap((line) => (line.startsWith("- ") ? [line.slice(2)] : []));
}

/** Whether one line is the other, perhaps shortened since: `excerpt` keeps all but two characters of the length it cuts to. */
export function isSameSaying(first: string, second: string): boolean {
  return cutChars(first, SAID_CHARS - 2) === cutChars(second, SAID_CHARS - 2);
}

/**
 * One line per message, oldest first: the previous section's lines, then the messages replaced now. Beyond `maxChars`
 * the oldest are dropped; `search_history` still finds them.
 */
export function saidLines(
  {
    replaced,
    kept,
  }: { readonly replaced: readonly StoredMessage[]; readonly kept: readonly StoredMessage[] },
  sectionBefore: string,
  maxChars: number,
): string[] {
  const rows = replaced.filter((row) => row.kind === "guidance");
  const isShown = kept.some((row) => row.kind === "guidance");
  const before = parseSaid(sectionBefore);
  const newLines = rows.flatMap((row) => {
    const messages = messagesIn(row);
    const isNewest = !isShown && row === rows.at(-1);
    const most = isNewest ? Math.max(SAID_CHARS, (maxChars * NEWEST_SHARE) / messages.length) : SAID_CHARS;
    return messages.map((message) => excerpt(message, most));
  });
  const isOld = isShown || newLines.length > 0;
  const lines = [...before.map((line) => (isOld ? excerpt(line, SAID_CHARS) : line)), ...newLines];
  const beside = lines.reduce((sum, line) => sum + Math.max(0, line.length - SAID_CHARS), 0);
  while (lines.length > 0 && lines.join("\n").length > maxChars + beside) lines.shift();
  return lines;
}

/** The messages that were merged into a row (`coalesce`), each on one line with its label. */
function messagesIn(row: StoredMessage): string[] {
  return messageText(row)
    .split(/\n+(?=(?:Also|\[\d+\]):(?:\s|$))/)
    .map((message) => message.replaceAll(/\s+/g, " ").trim());
}
