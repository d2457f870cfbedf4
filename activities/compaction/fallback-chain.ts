/** From a cut to a summary: a bounded row of tries, the last of which needs no model (requirement 4.2). */
import { composeSummary, type SummaryMaterial } from "./compose-summary.ts";
import { deterministicSummary } from "./deterministic-summary.ts";
import { checkAnswer, type Rejection, type SummaryCheck } from "./summary-check.ts";
import { parseSections } from "./summary-document.ts";
import { FULL_RESULT_CHARS, summaryPrompt, type SummaryPrompt } from "./summary-prompt.ts";
import { estimateText } from "../transcript/tokens.ts";
import { SummariserOverflow, type Attempt, type CompactionInput, type Summarise } from "./strategy.ts";

export interface LadderInput {
  readonly input: CompactionInput;
  readonly material: SummaryMaterial;
  /** Everything `validate` needs but the summary itself. */
  readonly check: Omit<SummaryCheck, "summary">;
  readonly validate: (check: SummaryCheck) => Rejection | undefined;
}

export interface LadderEnd {
  /** Undefined where every rung failed. */
  readonly summary: string | undefined;
  readonly attempts: readonly Attempt[];
}

/** Room for what our estimate of the summariser's input may be off by. */
const INPUT_SHARE = 0.85;

const RUNGS = [
  { rung: "full", resultChars: FULL_RESULT_CHARS, share: 1 },
  { rung: "results-cut", resultChars: 200, share: 0.8 },
  { rung: "oldest-dropped", resultChars: 0, share: 0.4 },
] as const;

/**
 * Climbs down: the whole input sized to the summariser's window, tool results cut, the oldest dropped, no model.
 * At most four requests: one a rung, and a second where an answer misses its form. A rung whose input would be no
 * smaller than the one before is left out. An inflated answer ends the asking: a model that cannot shorten this
 * will not shorten its half.
 */
export async function climbDown(ladder: LadderInput, summarise: Summarise): Promise<LadderEnd> {
  const attempts: Attempt[] = [];
  if (ladder.input.deterministic !== true) {
    const summary = await askModel(ladder, summarise, attempts);
    if (summary !== undefined) return { summary, attempts };
  }
  return withoutModel(ladder, attempts);
}

async function askModel(
  ladder: LadderInput,
  summarise: Summarise,
  attempts: Attempt[],
): Promise<string | undefined> {
  const window = ladder.input.summariserWindowTokens;
  const room = Math.floor((window - outputTokens(ladder)) * INPUT_SHARE);
  let smallest = Infinity;
  let reminded = false;
  for (const { rung, resultChars, share } of RUNGS) {
    let reminder: string | undefined;
    for (;;) {
      const prompt = promptFor(ladder, resultChars, Math.floor(room * share), reminder);
      // A window that not even one entry fits into: a summary of nothing would be worse than none.
      if (prompt.shown === 0) break;
      if (reminder === undefined && prompt.tokens >= smallest) break;
      smallest = Math.min(smallest, prompt.tokens);
      const tried = await tryOnce(ladder, prompt, summarise);
      const { outcome, detail } = tried;
      attempts.push({
        rung,
        requestTokens: prompt.tokens,
        outcome,
        ...(detail === undefined ? {} : { detail }),
      });
      if (tried.summary !== undefined) return tried.summary;
      if (outcome === "inflated") return undefined;
      if (reminded || outcome === "overflow") break;
      // Once in a round, a badly formed answer gets a second try with what was wrong with it.
      reminded = true;
      reminder = detail;
    }
  }
  return undefined;
}

/** Reasoning is billed as output too: twice the cap leaves room for it, as far as the summariser's own window does. */
function outputTokens({ material, input }: LadderInput): number {
  const quarter = Math.floor(input.summariserWindowTokens / 4);
  return Math.min(2 * material.maxTokens, input.summariserMaxOutput ?? quarter, quarter);
}

function promptFor(
  { input, material }: LadderInput,
  resultChars: number,
  maxTokens: number,
  reminder: string | undefined,
): SummaryPrompt {
  const { replaced: rows, previous } = material;
  return summaryPrompt({ rows, previous, focus: input.focus, reminder, resultChars, maxTokens });
}

interface Tried {
  readonly summary?: string;
  readonly outcome: string;
  readonly detail?: string | undefined;
}

async function tryOnce(ladder: LadderInput, prompt: SummaryPrompt, summarise: Summarise): Promise<Tried> {
  const { material, check, validate } = ladder;
  const { system, text, tokens } = prompt;
  let answer;
  try {
    answer = await summarise({ system, text, tokens, maxOutputTokens: outputTokens(ladder) });
  } catch (error) {
    if (!(error instanceof SummariserOverflow)) throw error;
    return { outcome: "overflow", detail: error.message };
  }
  const misformed = checkAnswer(answer);
  // A long answer without the headings is told to be too long first: form is no use to it.
  if (estimateText(answer.text) >= check.replacedTokens) {
    return { outcome: "inflated", detail: "The answer is longer than what it would replace." };
  }
  if (misformed !== undefined) return { outcome: misformed.reason, detail: misformed.detail };
  const summary = composeSummary(material, parseSections(answer.text));
  const rejected = validate({ ...check, summary });
  return rejected === undefined
    ? { summary, outcome: "accepted" }
    : { outcome: rejected.reason, detail: rejected.detail };
}

/** Lists of paths and open items are not cut for a figure: without a model twice the cap is accepted. */
const DETERMINISTIC_SLACK = 2;

function withoutModel({ material, check, validate }: LadderInput, attempts: Attempt[]): LadderEnd {
  const summary = deterministicSummary(material);
  const rejected = validate({ ...check, summary, maxTokens: check.maxTokens * DETERMINISTIC_SLACK });
  const outcome = rejected?.reason ?? "accepted";
  attempts.push({
    rung: "deterministic",
    requestTokens: 0,
    outcome,
    ...(rejected === undefined ? {} : { detail: rejected.detail }),
  });
  return { summary: rejected === undefined ? summary : undefined, attempts };
}
