/** Gets from a cut to a summary: a bounded series of fallbacks, the last of which needs no model (requirement 4.2). */
import { composeSummary, type SummaryMaterial } from "./compose-summary.ts";
import { deterministicSummary } from "./deterministic-summary.ts";
import { checkAnswer, checkSummary, type SummaryCheck } from "./summary-check.ts";
import { parseSections } from "./summary-document.ts";
import { FULL_RESULT_CHARS, summaryPrompt, type SummaryPrompt } from "./summary-prompt.ts";
import { estimateText } from "../text/tokens.ts";
import { SummariserOverflow, type Attempt, type CompactionInput, type Summarise } from "./compaction.ts";

interface SummaryTask {
  readonly input: CompactionInput;
  readonly material: SummaryMaterial;
  /** What the summary is checked against. */
  readonly check: Omit<SummaryCheck, "summary">;
}

interface SummaryResult {
  /** Undefined if every attempt failed. */
  readonly summary: string | undefined;
  readonly attempts: readonly Attempt[];
}

/** Margin for the error of our estimate of the summariser's input. */
const INPUT_SHARE = 0.85;

const FALLBACKS = [
  { rung: "full", resultChars: FULL_RESULT_CHARS, share: 1 },
  { rung: "results-cut", resultChars: 200, share: 0.8 },
  { rung: "oldest-dropped", resultChars: 0, share: 0.4 },
] as const;

/**
 * Tries in turn: the whole input, sized to the summariser's window; shorter tool results; only the newest messages;
 * no model. At most four requests: one per fallback, and one more if an answer is malformed. A fallback whose input
 * would be no smaller than the previous one is skipped. An inflated answer ends the series: a model that cannot
 * shorten this input cannot shorten half of it.
 */
export async function writeSummary(task: SummaryTask, summarise: Summarise): Promise<SummaryResult> {
  const attempts: Attempt[] = [];
  if (task.input.deterministic !== true) {
    const summary = await askModel(task, summarise, attempts);
    if (summary !== undefined) return { summary, attempts };
  }
  return withoutModel(task, attempts);
}

async function askModel(
  task: SummaryTask,
  summarise: Summarise,
  attempts: Attempt[],
): Promise<string | undefined> {
  const room = Math.floor((task.input.summariserWindowTokens - outputTokens(task)) * INPUT_SHARE);
  let smallest = Infinity;
  let reminded = false;
  for (const { rung, resultChars, share } of FALLBACKS) {
    let reminder: string | undefined;
    for (;;) {
      const prompt = promptFor(task, resultChars, Math.floor(room * share), reminder);
      // Not even one entry fits the window: a summary of nothing would be worse than none.
      if (prompt.shown === 0) break;
      if (reminder === undefined && prompt.tokens >= smallest) break;
      smallest = Math.min(smallest, prompt.tokens);
      const { summary, ...attempt } = await tryOnce(task, prompt, summarise);
      attempts.push({ rung, requestTokens: prompt.tokens, ...attempt });
      if (summary !== undefined) return summary;
      if (attempt.outcome === "inflated") return undefined;
      if (reminded || attempt.outcome === "overflow") break;
      // Once per compaction, a malformed answer is retried with a note of what was wrong.
      reminded = true;
      reminder = attempt.detail;
    }
  }
  return undefined;
}

/** Reasoning is billed as output too: twice the cap leaves room for it, as far as the summariser's window allows. */
function outputTokens({ material, input }: SummaryTask): number {
  const quarter = Math.floor(input.summariserWindowTokens / 4);
  return Math.min(2 * material.maxTokens, input.summariserMaxOutput ?? quarter, quarter);
}

function promptFor(
  { input, material }: SummaryTask,
  resultChars: number,
  maxTokens: number,
  reminder: string | undefined,
): SummaryPrompt {
  const { replaced: rows, previous } = material;
  return summaryPrompt({ rows, previous, focus: input.focus, reminder, resultChars, maxTokens });
}

type Tried = Pick<Attempt, "outcome" | "detail"> & { readonly summary?: string };

async function tryOnce(task: SummaryTask, prompt: SummaryPrompt, summarise: Summarise): Promise<Tried> {
  const { material, check } = task;
  const { system, text, tokens } = prompt;
  let answer;
  try {
    answer = await summarise({ system, text, tokens, maxOutputTokens: outputTokens(task) });
  } catch (error) {
    if (!(error instanceof SummariserOverflow)) throw error;
    return { outcome: "overflow", detail: error.message };
  }
  // The length is checked before the form: headings do not help an answer that is too long.
  if (estimateText(answer.text) >= check.replacedTokens) {
    return { outcome: "inflated", detail: "The answer is longer than what it would replace." };
  }
  const malformed = checkAnswer(answer);
  if (malformed !== undefined) return { outcome: malformed.reason, detail: malformed.detail };
  return checked(composeSummary(material, parseSections(answer.text)), check);
}

function checked(summary: string, check: SummaryTask["check"]): Tried {
  const rejected = checkSummary({ ...check, summary });
  return rejected === undefined
    ? { summary, outcome: "accepted" }
    : { outcome: rejected.reason, detail: rejected.detail };
}

/** Lists of paths and open items are never cut to fit: without a model, twice the cap is accepted. */
const DETERMINISTIC_SLACK = 2;

function withoutModel({ material, check }: SummaryTask, attempts: Attempt[]): SummaryResult {
  const maxTokens = check.maxTokens * DETERMINISTIC_SLACK;
  const { summary, ...attempt } = checked(deterministicSummary(material), { ...check, maxTokens });
  attempts.push({ rung: "deterministic", requestTokens: 0, ...attempt });
  return { summary, attempts };
}
