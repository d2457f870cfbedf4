/** Texts of a session in Temporal's Web UI before its first step. Pure. */
import { cutChars } from "../../activities/text/cut.ts";
import { inertMarkdown } from "../../activities/text/clean.ts";
import { present } from "../console/format.ts";

/** Bytes the server keeps of a summary. Source: survey of command lines, X8 (documents disagree: 200 or 400). */
const SUMMARY_BYTES = 180;
const SUMMARY_CHARS = 120;
const ELLIPSIS_BYTES = 3;
/** Source: survey of command lines, X8: 20,000 with room for the frame. */
const DETAIL_BYTES = 16_000;

/** The task on one line: at most 120 characters and 180 bytes. */
export function taskSummary(task: string): string {
  const flat = task
    .replace(/\p{Cc}+/gu, " ")
    .replace(/\s+/g, " ")
    .trim();
  const points = Array.from(flat);
  const short = points.length > SUMMARY_CHARS ? `${points.slice(0, SUMMARY_CHARS - 1).join("")}…` : flat;
  return cutToBytes(short, SUMMARY_BYTES);
}

export interface DetailFacts {
  readonly id: string;
  readonly task: string;
  readonly model: string;
  readonly maxSteps: number;
  readonly contextWindow: number;
  readonly workspace: string | undefined;
}

/** Markdown with the task as plain text: no image, no link, no code. */
export function taskDetails(facts: DetailFacts): string {
  const rows = present(
    `session \`${facts.id}\``,
    `model \`${facts.model.replaceAll("`", "")}\``,
    `at most ${facts.maxSteps} steps`,
    `window ${facts.contextWindow} tokens`,
    facts.workspace !== undefined && `files put in from \`${facts.workspace.replaceAll("`", "")}\``,
  );
  const text = `${rows.join(" · ")}\n\n${quoted(cutToBytes(facts.task, DETAIL_BYTES / 2))}`;
  return cutChars(text, DETAIL_BYTES);
}

/** The task as the Web UI's summary of a run, which is rendered as Markdown: the same text, escaped. */
export function staticSummary(task: string): string {
  const text = taskSummary(task);
  const disarmed = inertMarkdown(text);
  if (Buffer.byteLength(disarmed) <= SUMMARY_BYTES) return disarmed;
  // A cut between a character and its escape would activate the next one: whole characters are dropped instead.
  let kept = "";
  for (const point of text) {
    const next = kept + inertMarkdown(point);
    if (Buffer.byteLength(next) > SUMMARY_BYTES - ELLIPSIS_BYTES) break;
    kept = next;
  }
  return `${kept}…`;
}

function quoted(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => `> ${inertMarkdown(line)}  `)
    .join("\n");
}

/** The text's beginning in at most `maxBytes` of UTF-8, cut at a code point. */
export function cutToBytes(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  let used = 3;
  let kept = "";
  for (const point of text) {
    used += Buffer.byteLength(point);
    if (used > maxBytes) break;
    kept += point;
  }
  return `${kept}…`;
}
