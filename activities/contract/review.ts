/** What a reviewing session answers: the form that its model is asked for, and how an answer is read, leniently. */

const VERDICTS = ["comment", "approve", "request-changes"] as const;
type ReviewVerdict = (typeof VERDICTS)[number];

export const SEVERITIES = ["high", "medium", "low"] as const;
type Severity = (typeof SEVERITIES)[number];

export interface ReviewFinding {
  /** From the repository's top. */
  readonly path: string;
  /** Undefined if the answer names no line. */
  readonly line: number | undefined;
  readonly endLine: number | undefined;
  /** Whether the line is one of the file after the change, or before it. */
  readonly side: "new" | "old";
  readonly severity: Severity;
  readonly text: string;
  /** The lines that would replace those of the finding. */
  readonly suggestion: string | undefined;
}

export interface Review {
  readonly summary: string;
  readonly verdict: ReviewVerdict;
  readonly findings: readonly ReviewFinding[];
}

/** Takes more than it asks for: what has one plain meaning is read, and costs no further step. */
export const REVIEW_ANSWER_SCHEMA: Record<string, unknown> = {
  type: "object",
  required: ["summary", "verdict", "findings"],
  properties: {
    summary: { type: "string", description: "What the change does, and how good it is: a few sentences." },
    verdict: { type: "string", description: VERDICTS.join(" | ") },
    findings: {
      type: "array",
      items: {
        type: "object",
        required: ["path", "text"],
        properties: {
          path: { type: "string", description: "From the repository's top." },
          line: { type: ["integer", "string", "null"], description: "In the file, from 1." },
          endLine: {
            type: ["integer", "string", "null"],
            description: "The last line, if there are several.",
          },
          side: {
            type: ["string", "null"],
            description: "new (default): the line after the change. old: before it, for a deleted line.",
          },
          severity: { type: ["string", "null"], description: SEVERITIES.join(" | ") },
          text: { type: "string", description: "What is wrong, and why." },
          suggestion: {
            type: ["string", "null"],
            description: "The lines to put in place of those, exactly, if that mends it.",
          },
        },
      },
    },
  },
};

/** @returns undefined if it has no summary and no findings */
export function readReview(value: unknown): Review | undefined {
  if (!isRecord(value)) return undefined;
  const findings = (Array.isArray(value["findings"]) ? value["findings"] : []).flatMap(readFinding);
  const summary = textOf(value["summary"]) ?? "";
  if (summary === "" && findings.length === 0) return undefined;
  return { summary, verdict: readVerdict(value["verdict"]), findings };
}

function readFinding(value: unknown): ReviewFinding[] {
  if (!isRecord(value)) return [];
  const text = textOf(value["text"]);
  const path = toPath(textOf(value["path"]) ?? "");
  if (text === undefined || path === "") return [];
  const line = toLine(value["line"]);
  const last = toLine(value["endLine"]);
  const [from, to] =
    line !== undefined && last !== undefined && last < line ? [last, line] : [line ?? last, last];
  return [
    {
      path,
      line: from,
      endLine: to === from ? undefined : to,
      side: /^(old|left|before|deleted)$/i.test(textOf(value["side"]) ?? "") ? "old" : "new",
      severity: toSeverity(textOf(value["severity"]) ?? ""),
      text,
      suggestion: typeof value["suggestion"] === "string" ? value["suggestion"] : undefined,
    },
  ];
}

/** Nothing that is not clearly an approval is one. */
function readVerdict(value: unknown): ReviewVerdict {
  const word = (textOf(value) ?? "").toLowerCase().replaceAll(/[^a-z]/g, "");
  if (/^(requestchanges?|requestedchanges|changesrequested|reject(ed)?)$/.test(word))
    return "request-changes";
  return /^(approved?|lgtm)$/.test(word) ? "approve" : "comment";
}

function toSeverity(word: string): Severity {
  if (/^(high|critical|blocker|error|major|severe)/i.test(word)) return "high";
  return /^(low|minor|nit|info|trivial|style|suggestion)/i.test(word) ? "low" : "medium";
}

/** As the model may have written it: absolute, from the folder that it is in, or as a diff names it. */
const toPath = (path: string): string => path.replace(/^\/workspace\//, "").replace(/^(\.\/)+/, "");

function toLine(value: unknown): number | undefined {
  const number = typeof value === "string" ? Number(/^\s*L?(\d{1,9})/i.exec(value)?.[1]) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

function textOf(value: unknown): string | undefined {
  const text = typeof value === "string" ? value.trim() : "";
  return text === "" ? undefined : text;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
