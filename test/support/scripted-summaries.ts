/** A scripted model for steps and summaries: distinguishes the requests, and writes good summaries. */
import { SUMMARY_SYSTEM } from "../../activities/compaction/summary-prompt.ts";
import type { ParsedRequest, Reply } from "./model-server/wire.ts";
import { summaryText } from "./compacting.ts";
import { call, text, type ScriptedModelServer, type Turn } from "./scripted-model.ts";

export function isSummaryRequest(request: ParsedRequest): boolean {
  return request.system.includes(SUMMARY_SYSTEM.slice(0, 60));
}

/** All text of a request's conversation. */
export function wordsOf(request: Pick<ParsedRequest, "items">): string {
  return request.items.map((item) => JSON.stringify(item)).join("\n");
}

type Asked = Pick<ScriptedModelServer, "requests">;

/** All text of one of the requests, by default the newest; empty where there is none. */
export function wordsAsked({ requests }: Asked, at = -1): string {
  const request = requests.at(at);
  return request === undefined ? "" : wordsOf(request);
}

/** How often each of the texts is in it. */
export const timesAsked = (model: Asked, texts: readonly string[], at?: number): number[] =>
  texts.map((quote) => wordsAsked(model, at).split(quote).length - 1);

export interface LongSession {
  /** Answers of steps in order, from step 1; a request beyond them gets an error. */
  readonly steps: readonly Reply[];
  /** Answers a request for a summary. Default: a good summary that keeps each FACT-n of the request. */
  readonly summary?: (request: ParsedRequest) => Reply;
}

/** A retried step gets the same answer only after a refusal, since a refused request never reached the script. */
export function longSession({ steps, summary = goodSummary }: LongSession): Turn {
  let next = 0;
  return (request) => {
    if (isSummaryRequest(request)) return summary(request);
    const reply = steps[next++];
    if (reply === undefined) throw new Error(`Step ${next} was not expected.`);
    return reply;
  };
}

export function goodSummary(request: ParsedRequest): Reply {
  const facts = [...new Set(wordsOf(request).match(/FACT-\d+ is \w+/g))];
  return { parts: [text(summaryText({ state: `Known: ${facts.join("; ") || "nothing yet"}.` }))] };
}

/** A step that runs a command with some kilobytes of output; each differs, so that it does not count as a loop. */
export function noisyStep(step: number, lines = 60): Reply {
  const command = `for i in $(seq ${lines}); do echo "step ${step} line $i of a build that goes on"; done`;
  return { parts: [call("bash", { command })] };
}

/** Such steps, from one number to another. */
export const noisySteps = (from: number, to: number, lines?: number): Reply[] =>
  Array.from({ length: to - from + 1 }, (_, index) => noisyStep(from + index, lines));

export const says = (content: string): Reply => ({ parts: [text(content)] });
