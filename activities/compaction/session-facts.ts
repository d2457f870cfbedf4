/** Facts that code reads from a transcript without a model: files changed, open items, errors. Pure. */
import { objectOf } from "../text/json.ts";
import type { StoredMessage, ToolCallPart, ToolResultPart } from "../contract/message.ts";
import { excerpt, type ChecklistItem, type FileEntry } from "./summary-document.ts";

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
export function filesIn(rows: readonly StoredMessage[]): FileEntry[] {
  const files = new Map<string, FileEntry>();
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

function changesOf(call: ToolCallPart): FileEntry[] {
  const input = objectOf(call.input);
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

function patchedFiles(patch: string): FileEntry[] {
  return [...patch.matchAll(/^\*\*\* (?:(Add|Update|Delete) File|Move to): (.+)$/gm)].map((match) => ({
    path: relative((match[2] ?? "").trim()),
    action: PATCH_ACTIONS[match[1] ?? ""] ?? "moved here",
    description: "",
  }));
}

/** Items of the newest `todo` call; undefined if there was none. */
export function todoIn(rows: readonly StoredMessage[]): ChecklistItem[] | undefined {
  const call = callsIn(rows).findLast(({ call }) => call.toolName === "todo")?.call;
  const items = objectOf(call?.input)["items"];
  if (!Array.isArray(items)) return undefined;
  return items.flatMap((item: unknown) => {
    if (typeof item === "string") return [{ text: item, done: false }];
    const fields = objectOf(item);
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
      const said = excerpt((result?.text ?? "").replaceAll(/\s+/g, " "), 160);
      return `- ${call.toolName} ${about}: ${result?.outcome}: ${said}`;
    });
}

function aboutOf(call: ToolCallPart): string {
  const input = objectOf(call.input);
  return wordsOf(input["command"] ?? input["path"] ?? input["pattern"]);
}

/** Text of a message, its parts joined. */
export function textOf(row: StoredMessage): string {
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
export const pathOf = ({ input }: ToolCallPart): string => relative(wordsOf(objectOf(input)["path"]));

function relative(path: string): string {
  return path.replace(/^\/workspace\//, "").replace(/^\.\//, "");
}

function lineCount(content: unknown): number {
  return typeof content === "string" ? content.split("\n").length : 0;
}
