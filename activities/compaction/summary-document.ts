/** Parses and renders the parts of a summary. */
import { shorten } from "../text/cut.ts";

/** Source: requirement D4. */
export const SECTIONS = [
  "Original Task",
  "Completed Work",
  "Key Technical Decisions",
  "Current State",
  "Pending Work",
  "Errors & Resolutions",
] as const;
export type Section = (typeof SECTIONS)[number];
export type Sections = Readonly<Record<Section, string>>;

/** A file in the table of completed work. */
export interface FileNote {
  readonly path: string;
  readonly action: string;
  readonly description: string;
}

const HEADING = /^\s*(?:#{1,6}\s*|\*\*)(?:\d+[.)]\s*)?([A-Za-z &]+?)\s*:?\s*(?:\*\*)?\s*:?\s*$/;

/** Sections found in a text, whatever their heading level; sections without a heading are absent. */
export function parseSections(text: string): Partial<Sections> {
  const sections: Partial<Record<Section, string>> = {};
  let current: Section | undefined;
  let lines: string[] = [];
  const close = () => {
    if (current !== undefined) sections[current] = lines.join("\n").trim();
    lines = [];
  };
  for (const line of text.split("\n")) {
    const name = HEADING.exec(line)?.[1]?.toLowerCase().replace(" and ", " & ");
    const section = SECTIONS.find((title) => title.toLowerCase() === name);
    if (section === undefined) lines.push(line);
    else {
      close();
      current = section;
    }
  }
  close();
  return sections;
}

/** The same sections, with missing ones empty. */
export function withoutGaps(sections: Partial<Sections>): Sections {
  const filled: Partial<Record<Section, string>> = { ...sections };
  for (const section of SECTIONS) filled[section] ??= "";
  return filled as Sections;
}

/** First line of every summary. Source: requirement 4.2. */
function summaryHeader(round: number): string {
  return `Session Summary (Compaction Round ${round})`;
}

/** @param previous the summary that this one incorporates: the rounds of both are named */
export function renderSummary(round: number, sections: Sections, previous?: string): string {
  const parts = SECTIONS.map((section) => `## ${section}\n${sections[section].trim() || "None."}`);
  const earlier = previous === undefined ? "" : incorporatedRounds(previous);
  const note = earlier === "" ? [] : [`Incorporates the summaries of rounds ${earlier}.`];
  return [`# ${summaryHeader(round)}`, ...note, ...parts].join("\n\n");
}

const HEAD =
  /^# Session Summary \(Compaction Round (\d+)\)(?:\n\nIncorporates the summaries of rounds (.+)\.)?$/m;

/** The compactions that a summary incorporates, such as `1–3, 5`; undone ones are not among them. */
function incorporatedRounds(summary: string): string {
  const head = HEAD.exec(summary);
  if (head === null) return "";
  const round = Number(head[1]);
  const ranges = head[2]?.split(", ") ?? [];
  const [first, last = first] = ranges.at(-1)?.split("–") ?? [];
  if (first === undefined || Number(last) !== round - 1) return [...ranges, round].join(", ");
  return [...ranges.slice(0, -1), `${first}–${round}`].join(", ");
}

/** Rows of the file table; `dir/{a,b}` is read as two paths. */
export function parseFiles(completedWork: string): FileNote[] {
  const entries: FileNote[] = [];
  for (const line of completedWork.split("\n")) {
    const cells = /^\s*\|(.*)\|\s*$/
      .exec(line)?.[1]
      ?.split("|")
      .map((cell) => cell.trim());
    const [path = "", action = "", description = ""] = cells ?? [];
    if (path === "" || /^:?-+:?$/.test(path) || path.toLowerCase() === "file") continue;
    for (const file of expandBraces(path.replaceAll("`", "")))
      entries.push({ path: file, action, description });
  }
  return entries;
}

function expandBraces(path: string): string[] {
  const match = /^([^{]*)\{([^}]*)\}$/.exec(path);
  if (match === null) return [path];
  return (match[2] ?? "").split(",").map((name) => `${match[1]}${name}`);
}

/** The file table; without descriptions, and then by folder, if it would exceed `maxChars`. */
export function renderFiles(files: readonly FileNote[], maxChars: number): string {
  if (files.length === 0) return "";
  const full = table(files.map((file) => [file.path, file.action, file.description]));
  if (full.length <= maxChars) return full;
  const bare = table(files.map((file) => [file.path, file.action, ""]));
  return bare.length <= maxChars ? bare : table(byFolder(files));
}

function table(rows: readonly (readonly string[])[]): string {
  const lines = rows.map((cells) => `| ${cells.map(cell).join(" | ")} |`);
  return ["| File | Action | Description |", "|---|---|---|", ...lines].join("\n");
}

function cell(text: string): string {
  return text.replaceAll(/[\s|]+/g, " ").trim();
}

function byFolder(files: readonly FileNote[]): string[][] {
  const groups = new Map<string, string[]>();
  for (const { path, action } of files) {
    const slash = path.lastIndexOf("/") + 1;
    const key = `${action}\n${path.slice(0, slash)}`;
    groups.set(key, [...(groups.get(key) ?? []), path.slice(slash)]);
  }
  return [...groups].map(([key, names]) => {
    const [action = "", folder = ""] = key.split("\n");
    return [names.length === 1 ? `${folder}${names[0]}` : `${folder}{${names.join(",")}}`, action, ""];
  });
}

export interface ChecklistItem {
  readonly text: string;
  readonly done: boolean;
}

/** Items of a checklist (`- [ ] …`, `- [x] …`); a plain bullet counts as open. */
export function parseChecklist(text: string): ChecklistItem[] {
  const items: ChecklistItem[] = [];
  for (const line of text.split("\n")) {
    const match = /^\s*(?:[-*]|\d+[.)])\s+(?:\[([ xX])\]\s*)?(.+?)\s*$/.exec(line);
    const item = match?.[2];
    if (item === undefined || /^none\.?$/i.test(item)) continue;
    items.push({ text: item, done: match?.[1]?.toLowerCase() === "x" });
  }
  return items;
}

export function renderChecklist(items: readonly ChecklistItem[]): string {
  return items.map((item) => `- [${item.done ? "x" : " "}] ${item.text}`).join("\n");
}

/**
 * Whether the second item is the first, perhaps reworded: it has the first's distinguishing words (numbers, paths,
 * names with signs in them) and most of its other words.
 */
export function isSameItem(first: string, second: string): boolean {
  const [firstWords, secondWords] = [new Set(wordsOf(first)), new Set(wordsOf(second))];
  const marks = (set: ReadonlySet<string>) =>
    [...set]
      .filter((word) => /[\p{N}_./-]/u.test(word))
      .toSorted()
      .join(" ");
  if (marks(firstWords) !== marks(secondWords)) return false;
  return [...firstWords].filter((word) => secondWords.has(word)).length >= firstWords.size * 0.7;
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}_](?:[\p{L}\p{N}_./-]*[\p{L}\p{N}_])?/gu) ?? [];
}

/** A text cut to `maxChars` at a code point, with an ellipsis where something is missing. */
export function excerpt(text: string, maxChars: number): string {
  return shorten(text.trim(), maxChars);
}
