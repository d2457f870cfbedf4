/** Puts a summary together: what a model said, and what code knows better. Pure: no clock, no I/O. */
import type { StoredMessage } from "./message.ts";
import { filesIn, textOf, todoIn } from "./session-facts.ts";
import {
  excerpt,
  isSameItem,
  parseChecklist,
  parseFiles,
  parseSaid,
  parseSections,
  renderChecklist,
  renderFiles,
  renderSummary,
  SAID_HEADER,
  type ChecklistItem,
  type FileEntry,
  type Section,
} from "./summary-document.ts";

export interface SummaryMaterial {
  readonly round: number;
  /** What the summary replaces, earlier summaries included. */
  readonly replaced: readonly StoredMessage[];
  /** What stays in view: the task, user messages, the tail. */
  readonly kept: readonly StoredMessage[];
  /** Text of the summary that is folded in. */
  readonly previous: string | undefined;
  /** Cap of the whole summary. */
  readonly maxTokens: number;
}

/** Sections a model writes; the rest is filled in by code. */
export type WrittenSections = Partial<Record<Section, string>>;

/** Characters per token that lists of paths and items may count with. */
const LIST_CHARS_PER_TOKEN = 3;

/**
 * The whole summary. Original task, file table, open items and what the user said are taken from the rows and the
 * previous summary, so that a model can neither invent nor forget them; the rest is the model's.
 */
export function composeSummary(material: SummaryMaterial, written: WrittenSections): string {
  const before = parseSections(material.previous ?? "");
  const maxChars = material.maxTokens * LIST_CHARS_PER_TOKEN;
  return renderSummary(material.round, {
    "Original Task": originalTask(material, before["Original Task"] ?? "", maxChars / 5),
    "Completed Work": completedWork(
      material,
      before["Completed Work"] ?? "",
      written["Completed Work"] ?? "",
      maxChars,
    ),
    "Key Technical Decisions": written["Key Technical Decisions"] ?? "",
    "Current State": written["Current State"] ?? "",
    "Pending Work": pendingWork(material, before["Pending Work"] ?? "", written["Pending Work"] ?? ""),
    "Errors & Resolutions": written["Errors & Resolutions"] ?? "",
  });
}

function originalTask({ replaced, kept }: SummaryMaterial, before: string, maxChars: number): string {
  const task = [...kept, ...replaced].find((row) => row.kind === "task");
  const head =
    task === undefined
      ? (before.split("\n")[0] ?? "")
      : excerpt(textOf(task).replaceAll(/\s+/g, " "), maxChars / 2);
  const said = [
    ...parseSaid(before),
    ...replaced
      .filter((row) => row.kind === "guidance")
      .map((row) => excerpt(textOf(row).replaceAll(/\s+/g, " "), 300)),
  ];
  // What does not fit any more is the oldest; `search_history` still finds it.
  while (said.length > 0 && said.join("\n").length > maxChars) said.shift();
  return said.length === 0 ? head : `${head}\n${SAID_HEADER}\n${said.map((line) => `- ${line}`).join("\n")}`;
}

function completedWork(
  { replaced }: SummaryMaterial,
  before: string,
  written: string,
  maxChars: number,
): string {
  const files = new Map<string, FileEntry>();
  for (const entry of parseFiles(before)) files.set(entry.path, entry);
  for (const entry of filesIn(replaced)) files.set(entry.path, { ...entry, description: entry.description });
  // The model knows better what a change was for; which files there are is not its to say.
  for (const { path, description } of parseFiles(written)) {
    const entry = files.get(path);
    if (entry !== undefined && description !== "")
      files.set(path, { ...entry, description: excerpt(description, 100) });
  }
  const prose = written
    .split("\n")
    .filter((line) => !line.trim().startsWith("|"))
    .join("\n");
  const notes = excerpt(prose, maxChars / 4);
  return [renderFiles([...files.values()], maxChars / 2), /^none\.?$/i.test(notes) ? "" : notes]
    .filter((part) => part !== "")
    .join("\n\n");
}

function pendingWork({ replaced, kept }: SummaryMaterial, before: string, written: string): string {
  const todo = todoIn([...replaced, ...kept]);
  const said = parseChecklist(written);
  const known = [...(todo ?? []), ...said];
  const carried = parseChecklist(before).filter(
    (item) => !item.done && !known.some((each) => isSameItem(item.text, each.text)),
  );
  const items: ChecklistItem[] = [];
  for (const item of [...(todo ?? []), ...said, ...carried]) {
    if (!items.some((each) => isSameItem(item.text, each.text))) items.push(item);
  }
  return renderChecklist(items);
}
