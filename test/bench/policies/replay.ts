/** Replays a trajectory: what is sent, what it costs, what is left in view. No services. */
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import type { Occasion } from "../../../activities/contract/budget.ts";
import type { Message, StoredMessage } from "../../../activities/contract/message.ts";
import { shownMessage } from "../../../activities/transcript/view.ts";
import { PrefixCache, type Segment, tokensOf } from "../../support/model-server/prefix-cache.ts";
import { calls, result, rowsOf, user } from "../../support/rows.ts";
import type { Fact, FactKind, Trajectory, TrajectoryStep } from "./trajectory.ts";

/** Cached input at a tenth, output at eight times the price of input: GPT-5's price list (1.25, 0.125, 10 USD). */
const CACHED_PRICE = 0.1;
const OUTPUT_PRICE = 8;
/** Room that is left for the answer. */
export const MAX_OUTPUT_TOKENS = 4_000;

/** What a replay came to. Other agents' were measured once: test/fixtures/other-policies.json. */
export interface Outcome {
  /** Billed-equivalent tokens a step: input + cached at a tenth + output at its price, summaries included. */
  readonly perStep: number;
  readonly cachedShare: number;
  readonly rounds: number;
  readonly prunes: number;
  readonly overflows: number;
  /** Share of the facts that are in the last request's view. */
  readonly facts: number;
  readonly factsOf: Readonly<Record<FactKind, number>>;
  /** Of `perStep`, what summaries cost. */
  readonly summaries: number;
  /** Of `perStep`, what the agent itself wrote: the same under every policy. */
  readonly ownOutput: number;
}

const sizes = new WeakMap<StoredMessage, number>();
const counts = new Map<string, number>();

/** Real tokens of a text; o200k. */
export function countTokens(text: string): number {
  const tokens = counts.get(text) ?? encode(text).length;
  counts.set(text, tokens);
  return tokens;
}

/** Real tokens of a row as it is shown. */
function rowTokens(row: StoredMessage): number {
  const tokens = sizes.get(row) ?? 4 + countTokens(wordsOf(shownMessage(row)));
  sizes.set(row, tokens);
  return tokens;
}

/** All that a model reads of a message. */
function wordsOf(message: Message): string {
  return message.content
    .map((part) => {
      if (part.type === "tool-call") return `${part.toolName}\n${stringsOf(part.input)}`;
      return part.type === "file" ? "" : part.text;
    })
    .join("\n");
}

function stringsOf(input: unknown): string {
  return typeof input === "string" ? input : (JSON.stringify(input) ?? "");
}

export class Replay {
  rows: StoredMessage[] = [];
  /** Unless it is `trigger`, the cache is empty, and the next request is billed in full whatever it holds. */
  occasion: Occasion = "trigger";
  /** Steps taken. */
  step = 0;
  rounds = 0;
  prunes = 0;
  overflows = 0;
  readonly trajectory: Trajectory;
  contextWindow: number;
  readonly #cache = new PrefixCache();
  readonly #prefix: Segment;
  #sequence = 0;
  #billed = { fresh: 0, cached: 0, output: 0 };
  #summaries = 0;
  #ownOutput = 0;

  /** @param prefix what stands before the messages in every request: system prompt and tools, as text */
  constructor(trajectory: Trajectory, contextWindow: number, prefix: string) {
    this.trajectory = trajectory;
    this.contextWindow = contextWindow;
    this.#prefix = { key: "prefix", tokens: countTokens(prefix) };
    this.#append(rowsOf([user(trajectory.task)]));
  }

  get prefixTokens(): number {
    return this.#prefix.tokens;
  }

  /** The next request is longer than the window allows. */
  get overflown(): boolean {
    return tokensOf(this.#request()) > this.contextWindow - MAX_OUTPUT_TOKENS;
  }

  nextSequence(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  /** A person's message. */
  say({ user: text = "", cold }: TrajectoryStep): void {
    if (cold === true) this.#cache.forget();
    this.occasion = cold === true ? "return" : "trigger";
    this.#append(rowsOf([user(text)], this.#sequence + 1, this.step));
  }

  /** The next requests go to another model, which has nothing of them in its cache. */
  switchTo(contextWindow: number): void {
    this.contextWindow = contextWindow;
    this.#cache.forget();
    this.occasion = "smaller";
  }

  answer(step: TrajectoryStep): void {
    const named = step.calls.map(({ name, input }, index) => ({
      id: `call_${this.step}_${index}`,
      name,
      input,
    }));
    const message = calls(step.text, ...named);
    const output = countTokens(wordsOf(message));
    const request = this.#request();
    this.#ownOutput += output;
    this.#bill(request, output);
    this.occasion = "trigger";
    const usage = { input: tokensOf(request), output };
    this.#append(rowsOf([[message, { usage }]], this.#sequence + 1, this.step));
    this.step += 1;
  }

  /** @param outputs of the step's calls, as they are stored */
  addResults(step: TrajectoryStep, outputs: readonly string[]): void {
    const results = step.calls.map(({ name, failed }, index) =>
      result(
        `call_${this.step - 1}_${index}`,
        outputs[index] ?? "",
        failed === true ? "error" : "completed",
        name,
      ),
    );
    this.#append(rowsOf(results, this.#sequence + 1, this.step));
  }

  /** A summariser's call: billed as any other. */
  billSummary(request: readonly Segment[], outputTokens: number): void {
    this.#summaries += this.#bill(request, outputTokens);
  }

  /** The oldest answer with its results goes, after a summary or the task. */
  dropOldest(): void {
    const from = this.rows.findIndex((row) => row.kind === "answer");
    const next = this.rows.findIndex((row, at) => at > from && row.role !== "tool");
    this.rows = this.rows.filter((_, at) => at < from || at >= (next === -1 ? from + 1 : next));
  }

  outcome(): Outcome {
    const { facts, steps } = this.trajectory;
    const text = this.rows.map((row) => wordsOf(shownMessage(row))).join("\n");
    const found = (list: readonly Fact[]) =>
      list.filter((fact) => text.includes(fact.key)).length / list.length;
    const of = (kind: FactKind) => found(facts.filter((fact) => fact.kind === kind));
    const { fresh, cached, output } = this.#billed;
    return {
      perStep: (fresh + cached * CACHED_PRICE + output * OUTPUT_PRICE) / steps.length,
      cachedShare: cached / (fresh + cached),
      rounds: this.rounds,
      prunes: this.prunes,
      overflows: this.overflows,
      facts: found(facts),
      factsOf: { rule: of("rule"), decision: of("decision"), path: of("path"), finding: of("finding") },
      summaries: this.#summaries / steps.length,
      ownOutput: (this.#ownOutput * OUTPUT_PRICE) / steps.length,
    };
  }

  #request(): Segment[] {
    return [this.#prefix, ...this.rows.map((row) => ({ key: row, tokens: rowTokens(row) }))];
  }

  #bill(request: readonly Segment[], output: number): number {
    const cached = this.#cache.send(request);
    const fresh = tokensOf(request) - cached;
    this.#billed.fresh += fresh;
    this.#billed.cached += cached;
    this.#billed.output += output;
    return fresh + cached * CACHED_PRICE + output * OUTPUT_PRICE;
  }

  #append(added: readonly StoredMessage[]): void {
    this.#sequence += added.length;
    this.rows = [...this.rows, ...added];
  }
}
