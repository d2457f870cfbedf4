/** Composes a summary from a model's text and from facts that code knows better, or without a model. */
import type { StoredMessage } from "../contract/message.ts";
import {
  SAID_HEADER,
  saidLines,
  isStandingRule,
  standingRules,
  filesIn,
  messageText,
  todoIn,
  callsIn,
  errorsIn,
} from "./session-facts.ts";
import {
  excerpt,
  isSameItem,
  parseChecklist,
  parseFiles,
  parseSections,
  renderChecklist,
  renderFiles,
  renderSummary,
  type ChecklistItem,
  type FileNote,
  type Sections,
  withoutGaps,
} from "./summary-document.ts";

export interface SummaryMaterial {
  readonly round: number;
  /** The rows that the summary replaces, earlier summaries included. */
  readonly replaced: readonly StoredMessage[];
  /** The rows that stay in view: the task, user messages, the tail. */
  readonly kept: readonly StoredMessage[];
  /** Text of the earlier summary that is incorporated. */
  readonly previous: string | undefined;
  /** Most tokens of the whole summary. */
  readonly maxTokens: number;
}

/** Characters per token assumed for lists of paths and items. */
const LIST_CHARS_PER_TOKEN = 3;
/** How far carried-over content may fill a summary: at some four characters per token it stays under its cap. */
const FULL_SHARE = 1.1;

/**
 * The whole summary. The original task, file table, open items and user-message excerpts come from the rows and the
 * previous summary, so that a model can neither invent nor forget them; earlier decisions are kept beside the new
 * ones, so that the model need not repeat them. The rest is the model's.
 */
export function composeSummary(material: SummaryMaterial, answer: Partial<Sections>): string {
  const { round, previous, replaced, kept } = material;
  const before = withoutGaps(parseSections(previous ?? ""));
  const answerSections = withoutGaps(answer);
  const maxChars = material.maxTokens * LIST_CHARS_PER_TOKEN;
  const sections = {
    ...answerSections,
    "Original Task": originalTask(material, before["Original Task"], maxChars / 5),
    "Completed Work": completedWork(
      material,
      before["Completed Work"],
      answerSections["Completed Work"],
      maxChars,
    ),
    "Pending Work": pendingWork(
      material,
      before["Pending Work"],
      answerSections["Pending Work"],
      maxChars / 3,
    ),
  };
  const room = maxChars * FULL_SHARE - renderSummary(round, sections, previous).length;
  const earlier = before["Key Technical Decisions"];
  const rules = standingRules([...replaced, ...kept], earlier);
  const decisionChars = Math.min(room - rules.join("\n").length, maxChars / 4);
  const decided = [
    ...rules,
    ...decisions(earlier, answerSections["Key Technical Decisions"], decisionChars),
  ].join("\n");
  return renderSummary(round, { ...sections, "Key Technical Decisions": decided }, previous);
}

/** Decisions of earlier compactions that the model omitted, oldest first; the newest are kept as far as there is room. */
function decisions(before: string, decided: string, maxChars: number): string[] {
  const fresh = linesOf(decided);
  const earlier: string[] = [];
  let room = maxChars;
  for (const line of linesOf(before).toReversed()) {
    if (fresh.some((item) => isSameItem(item, line))) continue;
    room -= line.length + 1;
    if (room < 0) break;
    earlier.unshift(line);
  }
  return [...earlier, ...fresh];
}

function linesOf(section: string): string[] {
  return section
    .split("\n")
    .filter((line) => line.trim() !== "" && !/^(- )?none\.?$/i.test(line.trim()) && !isStandingRule(line));
}

function originalTask({ replaced, kept }: SummaryMaterial, before: string, maxChars: number): string {
  const task = [...kept, ...replaced].find((row) => row.kind === "task");
  const head =
    task === undefined
      ? (before.split("\n")[0] ?? "")
      : excerpt(messageText(task).replaceAll(/\s+/g, " "), maxChars / 2);
  const requests = saidLines({ replaced, kept }, before, maxChars);
  return requests.length === 0
    ? head
    : `${head}\n${SAID_HEADER}\n${requests.map((line) => `- ${line}`).join("\n")}`;
}

function completedWork(
  { replaced }: SummaryMaterial,
  before: string,
  section: string,
  maxChars: number,
): string {
  const files = new Map<string, FileNote>();
  for (const entry of parseFiles(before)) files.set(entry.path, entry);
  for (const entry of filesIn(replaced)) files.set(entry.path, { ...entry, description: entry.description });
  // The model knows better what a change was for, but does not decide which files there are.
  for (const { path, description } of parseFiles(section)) {
    const entry = files.get(path);
    if (entry !== undefined && description !== "")
      files.set(path, { ...entry, description: excerpt(description, 100) });
  }
  const prose = section
    .split("\n")
    .filter((line) => !line.trim().startsWith("|"))
    .join("\n");
  const notes = excerpt(prose, maxChars / 4);
  return [renderFiles([...files.values()], maxChars / 2), /^none\.?$/i.test(notes) ? "" : notes]
    .filter((part) => part !== "")
    .join("\n\n");
}

const TODO_HEADER = "Todo list:";
const OTHERS_HEADER = "Also:";
/** Closed items of the todo list that are still shown: the newest. */
const MAX_CLOSED = 10;

/**
 * Open items: the current todo list, items that the model names, and items open in the previous summary. An open item
 * never disappears without being shown once as closed, whether it left the list or exceeds `maxChars`.
 */
function pendingWork(
  { replaced, kept }: SummaryMaterial,
  before: string,
  section: string,
  maxChars: number,
): string {
  const [listBefore = "", othersBefore = ""] = before.startsWith(TODO_HEADER)
    ? before.split(`\n${OTHERS_HEADER}\n`)
    : ["", before];
  const open = (text: string) => parseChecklist(text).filter((item) => !item.done);
  const list = todoIn([...replaced, ...kept]);
  const todo = list === undefined ? open(listBefore) : withoutOldClosed(list);
  const unlisted = list === undefined ? [] : unknownTo(todo, open(listBefore));
  const added = unknownTo([...todo, ...unlisted], parseChecklist(section));
  const carried = unknownTo([...todo, ...unlisted, ...parseChecklist(section)], open(othersBefore));
  const dropped = unlisted.map((item) => closed(item, "no longer on the list"));
  let room = maxChars - renderChecklist([...todo, ...dropped, ...added]).length;
  // The newest carried-over items stay open as far as there is room.
  const old = carried
    .toReversed()
    .map((item) => {
      room -= item.text.length;
      return room >= 0 ? item : closed(item, "set aside; search_history finds it");
    })
    .toReversed();
  const otherItems = [...dropped, ...old, ...added];
  return [
    todo.length === 0 ? "" : `${TODO_HEADER}\n${renderChecklist(todo)}`,
    otherItems.length === 0 ? "" : `${OTHERS_HEADER}\n${renderChecklist(otherItems)}`,
  ]
    .filter((part) => part !== "")
    .join("\n");
}

function withoutOldClosed(list: readonly ChecklistItem[]): ChecklistItem[] {
  const closedItems = new Set(list.filter((item) => item.done).slice(-MAX_CLOSED));
  return list.filter((item) => !item.done || closedItems.has(item));
}

function unknownTo(listed: readonly ChecklistItem[], items: readonly ChecklistItem[]): ChecklistItem[] {
  return items.filter((item) => !listed.some((other) => isSameItem(item.text, other.text)));
}

function closed(item: ChecklistItem, why: string): ChecklistItem {
  return { text: `${excerpt(item.text, 120)} (${why})`, done: true };
}

/** Shares of the cap, in characters at three per token, for free text; lists take the rest. */
const STATE_SHARE = 0.2;
const ERROR_SHARE = 0.12;

/** Always succeeds, and always produces the same text for the same rows. */
export function deterministicSummary(material: SummaryMaterial): string {
  const before = withoutGaps(parseSections(material.previous ?? ""));
  const maxChars = material.maxTokens * 3;
  return composeSummary(material, {
    "Current State": excerpt(currentState(material.replaced), maxChars * STATE_SHARE),
    "Errors & Resolutions": errors(material.replaced, before["Errors & Resolutions"], maxChars * ERROR_SHARE),
  });
}

function currentState(replaced: readonly StoredMessage[]): string {
  const answers = replaced.filter((row) => row.kind === "answer" && messageText(row) !== "").slice(-3);
  const lines = answers.map(
    (row) => `- Step ${row.step}: ${excerpt(messageText(row).replaceAll(/\s+/g, " "), 250)}`,
  );
  const counts = new Map<string, number>();
  for (const { call } of callsIn(replaced)) counts.set(call.toolName, (counts.get(call.toolName) ?? 0) + 1);
  const tools = [...counts].map(([name, count]) => `${name} ${count}`).join(", ");
  return [tools === "" ? "" : `Tool calls replaced here: ${tools}.`, ...lines]
    .filter((line) => line !== "")
    .join("\n");
}

function errors(replaced: readonly StoredMessage[], before: string, maxChars: number): string {
  const recent = errorsIn(replaced, 5).join("\n");
  const room = Math.max(0, maxChars - recent.length - 1);
  return excerpt(
    [excerpt(/^none\.?$/i.test(before) ? "" : before, room), recent].filter(Boolean).join("\n"),
    maxChars,
  );
}
