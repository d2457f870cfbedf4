/** Compaction without a database: rows before and after a compaction, and a summariser that follows a script. */
import { budgetFor } from "../../activities/config/budget.ts";
import type { Message, StoredMessage } from "../../activities/contract/message.ts";
import type { RawAnswer } from "../../activities/compaction/summary-check.ts";
import type {
  Compaction,
  CompactionInput,
  Summarise,
  SummaryRequest,
} from "../../activities/compaction/compaction.ts";
import { calls, result } from "./rows.ts";

/** Figures of a 32k window. */
export const budget = budgetFor(32_000, { triggerRatio: 0.8 });
export const filler = "The build printed another line of no great interest.\n".repeat(30);

let count = 0;

/** Steps with one command each. */
export function work(steps: number, text = filler): Message[] {
  return Array.from({ length: steps }, () => {
    const id = `call_${count++}`;
    return [calls("", id), result(id, text)];
  }).flat();
}

/** A step that writes a file of two lines. */
export function writes(path: string): Message[] {
  const id = `call_${count++}`;
  const call = calls("", { id, name: "write_file", input: { path, content: "a\nb" } });
  return [call, result(id, "written", "completed", "write_file")];
}

export function roundOf(
  rows: readonly StoredMessage[],
  round = 1,
  extra: Partial<CompactionInput> = {},
): CompactionInput {
  const trigger = "threshold";
  return { rows, budget, round, trigger, prefixTokens: 2_000, summariserRoomTokens: 32_000, ...extra };
}

/** @throws if the compaction had another outcome */
export function compacted(compaction: Compaction): Extract<Compaction, { kind: "compacted" }> {
  if (compaction.kind !== "compacted") throw new Error(`Not compacted: ${JSON.stringify(compaction)}`);
  return compaction;
}

/** The view after a compaction, as the store would return it. */
export function afterRound(
  rows: readonly StoredMessage[],
  compaction: Extract<Compaction, { kind: "compacted" }>,
  round: number,
): StoredMessage[] {
  const replacedIds = new Set(compaction.replaced);
  const summary: StoredMessage = {
    role: "assistant",
    content: [{ type: "text", text: compaction.summary }],
    sequence: Math.max(...rows.map((row) => row.sequence)) + 1,
    position: compaction.position,
    step: 0,
    slot: `summary:${round}`,
    kind: "summary",
    tokens: compaction.summaryTokens,
    prunedStep: undefined,
  };
  return [...rows.filter((row) => !replacedIds.has(row.sequence)), summary].toSorted(
    (a, b) => a.position - b.position,
  );
}

export interface Written {
  readonly work?: string;
  readonly decisions?: string;
  readonly state?: string;
  readonly pending?: string;
  readonly errors?: string;
}

export function summaryText(written: Written = {}): string {
  const { work, decisions, state, pending, errors } = written;
  return [
    `## Completed Work\n${work ?? "None."}`,
    `## Key Technical Decisions\n${decisions ?? "None."}`,
    `## Current State\n${state ?? "Going on."}`,
    `## Pending Work\n${pending ?? "None."}`,
    `## Errors & Resolutions\n${errors ?? "None."}`,
  ].join("\n\n");
}

export interface ScriptedSummariser {
  readonly summarise: Summarise;
  readonly requests: SummaryRequest[];
}

/** Answers in turn; an error in the script is thrown. A request beyond the script throws. */
export function scriptedSummariser(
  ...script: readonly (string | Partial<RawAnswer> | Error)[]
): ScriptedSummariser {
  const requests: SummaryRequest[] = [];
  const summarise: Summarise = (request) => {
    const answer = script[requests.push(request) - 1];
    if (answer === undefined)
      return Promise.reject(new Error(`Request ${requests.length} was not expected.`));
    if (answer instanceof Error) return Promise.reject(answer);
    const fields = typeof answer === "string" ? { text: answer } : answer;
    return Promise.resolve({ text: "", finish: "stop", hasToolCall: false, ...fields });
  };
  return { summarise, requests };
}
