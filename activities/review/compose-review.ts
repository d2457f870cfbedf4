/** What is written into a pull request of a review: which findings on their lines, which in the summary, and in which words. */
import { createHash } from "node:crypto";
import type { ForgePlace } from "../config/git-settings.ts";
import { harmlessPost } from "../forge/harmless-post.ts";
import type { ReviewComment, ReviewOrder } from "../forge/forge.ts";
import { makeMark } from "../forge/post-once.ts";
import { cutChars, shorten } from "../text/cut.ts";
import { plural } from "../text/format.ts";
import { SEVERITIES, type ReviewFinding, type Review } from "../contract/review.ts";
import { FINDING, type EarlierFinding } from "./begin-review.ts";
import type { DiffFile, DiffLine } from "./diff-places.ts";

/** Findings on lines. Chosen: nobody reads more, and a forge's request takes them at once. */
const MAX_COMMENTS = 50;
/** All findings in the summary, and each. Chosen: with the summary itself, a post takes 60,000. */
const MAX_LISTED_CHARS = 40_000;
const MAX_ITEM_CHARS = 600;
const MAX_SUMMARY_CHARS = 15_000;
const MAX_COMMENT_CHARS = 10_000;
const COMMIT_CHARS = 12;

export interface ComposedReview {
  readonly order: ReviewOrder;
  /** Findings that the summary lists, or counts. */
  readonly inSummary: number;
  /** Findings that earlier reviews have told, which are not told again. */
  readonly toldBefore: number;
}

export interface ComposeFacts {
  readonly kind: ForgePlace["kind"];
  readonly sessionId: string;
  /** What was read. */
  readonly commit: string;
  /** The pull request's newest commit now. */
  readonly head: string;
  readonly files: ReadonlyMap<string, DiffFile>;
  readonly earlier: readonly EarlierFinding[];
  readonly postKey: string;
  /** Why the verdict can only be a comment; undefined if it may be what it is. */
  readonly onlyComment: string | undefined;
  readonly clean: (text: string) => string;
}

export function composeReview(review: Review, facts: ComposeFacts): ComposedReview {
  const inOrder = review.findings.toSorted(
    (one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity),
  );
  const fresh = inOrder.filter((finding) => !isTold(finding, facts));
  const placed = fresh.map((finding) => ({ finding, comment: commentFor(finding, facts) }));
  const comments = placed.flatMap(({ comment }) => comment ?? []).slice(0, MAX_COMMENTS);
  const onLines = new Set(comments);
  const listed = placed.filter(({ comment }) => comment === undefined || !onLines.has(comment));
  const toldBefore = inOrder.length - fresh.length;
  const rest = listed.map(({ finding }) => finding);
  return {
    order: {
      commit: facts.commit,
      verdict: facts.onlyComment === undefined ? review.verdict : "comment",
      text: summaryText(review, facts, { listed: rest, toldBefore }),
      comments,
    },
    inSummary: listed.length,
    toldBefore,
  };
}

/** The same review with all of its findings in the summary, for a forge that takes none of their lines. */
export function withoutLines(review: Review, facts: ComposeFacts): ComposedReview {
  return composeReview(review, { ...facts, files: new Map(), onlyComment: facts.onlyComment ?? "" });
}

/** The beginning of its post's id: the same finding of a later head has the same. */
function digestOf({ path, text }: ReviewFinding): string {
  return `${FINDING}${createHash("sha256").update(`${path}\0${text}`).digest("hex").slice(0, 16)}.`;
}

function isTold(finding: ReviewFinding, { earlier }: ComposeFacts): boolean {
  const digest = digestOf(finding);
  return earlier.some(
    (one) =>
      one.id.startsWith(digest) ||
      (!one.isResolved && isSamePlace(one, finding) && isReworded(one.text, finding.text)),
  );
}

const isSamePlace = (one: EarlierFinding, { path, line }: ReviewFinding): boolean =>
  one.path === path && one.line !== undefined && one.line === line;

/** Of the words of a finding that another wording of it has. Chosen. */
const SHARED = 0.6;

/** Only then it is the same finding: another one on the same line is told. */
function isReworded(earlier: string, text: string): boolean {
  const before = new Set(wordsIn(earlier));
  const own = wordsIn(text);
  return own.length > 0 && own.filter((word) => before.has(word)).length >= SHARED * own.length;
}

/** Short ones are in any text. */
const wordsIn = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}_]{4,}/gu) ?? [];

function commentFor(finding: ReviewFinding, facts: ComposeFacts): ReviewComment | undefined {
  const { line, endLine, side } = finding;
  const file = facts.files.get(finding.path);
  if (file === undefined || line === undefined) return undefined;
  const at = file.lines.find((one) => one[side] === line);
  if (at === undefined) return undefined;
  const last = file.lines.find((one) => one[side] === endLine);
  // A range is shown where one part of the diff shows all of it.
  const isRange = endLine !== undefined && last?.hunk === at.hunk && isOneSided(at, last, side);
  const end = isRange && last !== undefined ? last : at;
  return {
    oldPath: file.oldPath,
    newPath: file.newPath,
    first: { old: at.old, new: at.new },
    last: { old: end.old, new: end.new },
    text: commentText(finding, facts, {
      isRange,
      mayReplace: side === "new" && (endLine === undefined || isRange),
    }),
  };
}

/** What is unchanged counts as a line after the change: both ends must be on the same side. */
const isOneSided = (at: DiffLine, last: DiffLine, side: ReviewFinding["side"]): boolean =>
  side === "new" || (at.new === undefined) === (last.new === undefined);

function commentText(
  finding: ReviewFinding,
  { kind, postKey, clean, commit }: ComposeFacts,
  { isRange, mayReplace }: { readonly isRange: boolean; readonly mayReplace: boolean },
): string {
  const { line = 0, endLine = 0, severity, text, suggestion } = finding;
  // GitHub alone shows which lines a comment is about.
  const lines = endLine > line && (kind !== "github" || !isRange) ? ` (lines ${line} to ${endLine})` : "";
  const more = kind === "gitlab" && isRange ? `:-0+${endLine - line}` : "";
  const word = mayReplace && kind !== "gitea" ? `suggestion${more}` : "";
  const body = [`**${severity}**${lines}: ${text}`];
  if (suggestion !== undefined) body.push(`${word === "" ? "Instead:\n" : ""}${fenced(suggestion, word)}`);
  const safe = shorten(harmlessPost(withoutMarks(clean(body.join("\n\n")))), MAX_COMMENT_CHARS);
  return `${safe}\n\n${makeMark(postKey, `${digestOf(finding)}${commit}`)}`;
}

/** A fence that the text cannot end. */
function fenced(text: string, word: string): string {
  const runs = [...text.matchAll(/`+/g)].map(([run]) => run.length);
  const fence = "`".repeat(Math.max(3, 1 + Math.max(0, ...runs)));
  return `${fence}${word}\n${text.replace(/\n$/, "")}\n${fence}`;
}

/** A model may have copied one of ours. */
const withoutMarks = (text: string): string => text.replaceAll(/<!--(?=\s*\/?longhaul)/gi, "&lt;!--");

const VERDICT_TEXTS = {
  approve: "Nothing speaks against merging it.",
  "request-changes": "It needs changes before it is merged.",
  comment: "",
} as const;

function summaryText(
  { summary, verdict }: Review,
  { commit, head, sessionId, onlyComment, clean }: ComposeFacts,
  { listed, toldBefore }: { readonly listed: readonly ReviewFinding[]; readonly toldBefore: number },
): string {
  const read = cutChars(commit, COMMIT_CHARS);
  const parts = [
    shorten(summary, MAX_SUMMARY_CHARS),
    onlyComment === undefined ? "" : VERDICT_TEXTS[verdict],
    ...listing(listed),
    toldBefore === 0
      ? ""
      : `${plural(toldBefore, "finding")} of earlier reviews still ${toldBefore === 1 ? "stands" : "stand"}.`,
    commit === head
      ? `Longhaul reviewed ${read}.`
      : `Longhaul reviewed ${read}. The branch has moved to ${cutChars(head, COMMIT_CHARS)} since, which was not read.`,
  ];
  const text = parts.filter((part) => part !== "").join("\n\n");
  return `${harmlessPost(withoutMarks(clean(text)))}\n\nLonghaul-Session: ${sessionId}`;
}

/** Findings that are on no line of the diff, or too many. */
function listing(findings: readonly ReviewFinding[]): string[] {
  if (findings.length === 0) return [];
  const rows: string[] = [];
  let chars = 0;
  for (const { path, line, endLine, side, severity, text } of findings) {
    const lines = line === undefined ? "" : `:${line}${endLine === undefined ? "" : `-${endLine}`}`;
    const where = `${path.replaceAll("`", "'")}${lines}${side === "old" ? " before the change" : ""}`;
    const row = `- \`${where}\` **${severity}**: ${shorten(text.replaceAll(/\s+/g, " "), MAX_ITEM_CHARS)}`;
    chars += row.length;
    if (chars > MAX_LISTED_CHARS) break;
    rows.push(row);
  }
  const more = findings.length - rows.length;
  return [
    `${plural(findings.length, "finding")} beside the lines that are commented:`,
    [...rows, ...(more > 0 ? [`- and ${more} more, which the session's answer has`] : [])].join("\n"),
  ];
}
