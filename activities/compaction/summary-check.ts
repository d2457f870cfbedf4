/** Whether a summary may replace its messages (invariant 9). */
import { isSameSaying, parseSaid } from "./session-facts.ts";
import {
  isSameItem,
  parseChecklist,
  parseFiles,
  parseSections,
  SECTIONS,
  type Section,
  withoutGaps,
} from "./summary-document.ts";
import { estimateText } from "../text/tokens.ts";

/** Why a summary is refused. */
type RejectionReason =
  | "empty"
  | "tool-call"
  | "unfinished"
  | "missing-section"
  | "over-target"
  | "inflated"
  | "too-little-saved"
  | "lost-path"
  | "lost-item"
  | "lost-rule";

export interface Rejection {
  readonly reason: RejectionReason;
  /** For people and for the reminder to the model. */
  readonly detail: string;
}

/** Least share of the request that a compaction must save. Source: OpenHands, 10 %. */
export const MIN_PROGRESS = 0.1;

/** Sections that the model is asked for; code inserts the original task. */
export const WRITTEN_SECTIONS: readonly Section[] = SECTIONS.filter((section) => section !== "Original Task");

export interface RawAnswer {
  readonly text: string;
  readonly finish: string;
  readonly hasToolCall: boolean;
}

/** Checks a model's raw answer. @returns undefined if it can be used */
export function checkRawAnswer(answer: RawAnswer): Rejection | undefined {
  if (answer.hasToolCall) return { reason: "tool-call", detail: "The answer calls a tool." };
  if (answer.text.trim() === "") return { reason: "empty", detail: "The answer has no text." };
  if (answer.finish !== "stop") {
    return { reason: "unfinished", detail: `The answer was cut off (${answer.finish}).` };
  }
  const sections = parseSections(answer.text);
  const missing = WRITTEN_SECTIONS.filter((section) => sections[section] === undefined);
  return missing.length === 0
    ? undefined
    : { reason: "missing-section", detail: `Missing sections: ${missing.join(", ")}.` };
}

export interface SummaryCheck {
  readonly summary: string;
  readonly previous: string | undefined;
  /** Tokens of the rows that the summary replaces. */
  readonly replacedTokens: number;
  /** Tokens of the whole request before the compaction. */
  readonly beforeTokens: number;
  readonly maxTokens: number;
}

/** Checks a finished summary. @returns undefined if it may replace its messages */
export function checkSummary(check: SummaryCheck): Rejection | undefined {
  const tokens = estimateText(check.summary);
  const saved = check.replacedTokens - tokens;
  if (saved <= 0) {
    return { reason: "inflated", detail: `${tokens} tokens would replace ${check.replacedTokens}.` };
  }
  if (tokens > check.maxTokens) {
    return { reason: "over-target", detail: `${tokens} tokens; at most ${check.maxTokens} are allowed.` };
  }
  if (saved < check.beforeTokens * MIN_PROGRESS) {
    return {
      reason: "too-little-saved",
      detail: `${saved} of ${check.beforeTokens} tokens saved; at least 10 % are required.`,
    };
  }
  const sections = parseSections(check.summary);
  const missing = SECTIONS.filter((section) => sections[section] === undefined);
  if (missing.length > 0)
    return { reason: "missing-section", detail: `Missing sections: ${missing.join(", ")}.` };
  return check.previous === undefined ? undefined : lostFrom(check.previous, check.summary);
}

/** What the later summary lost: a path, an item that is neither open nor closed, or a rule. */
export function lostFrom(previous: string, next: string): Rejection | undefined {
  const [before, after] = [withoutGaps(parseSections(previous)), withoutGaps(parseSections(next))];
  const paths = new Set(parseFiles(after["Completed Work"]).map((file) => file.path));
  const path = parseFiles(before["Completed Work"]).find((file) => !paths.has(file.path));
  if (path !== undefined)
    return { reason: "lost-path", detail: `${path.path} is missing from the table of files.` };
  const items = parseChecklist(after["Pending Work"]);
  const item = parseChecklist(before["Pending Work"]).find(
    ({ done, text }) => !done && !items.some((later) => isSameItem(text, later.text)),
  );
  if (item !== undefined)
    return { reason: "lost-item", detail: `"${item.text}" is neither open nor closed.` };
  const requests = parseSaid(after["Original Task"]);
  // The oldest excerpts may have made room for newer ones; a gap among the rest is a loss.
  const keptFlags = parseSaid(before["Original Task"]).map((line) =>
    requests.some((saying) => isSameSaying(saying, line)),
  );
  const first = keptFlags.indexOf(true);
  const hole =
    first === -1 ? keptFlags.length > 0 && requests.length === 0 : keptFlags.slice(first).includes(false);
  return hole ? { reason: "lost-rule", detail: "Something that the user said is missing." } : undefined;
}
