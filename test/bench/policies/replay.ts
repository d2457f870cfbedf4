/** Replays a trajectory under a policy: what is sent, what it costs, what is left in view. No services. */
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import type { Message, StoredMessage } from "../../../activities/contract/message.ts";
import { shownMessage } from "../../../activities/transcript/view.ts";
import { calls, result, rowsOf, user } from "../../support/rows.ts";
import { PrefixCache, type Segment } from "./prefix-cache.ts";
import type { Fact, FactKind, Trajectory, TrajectoryStep } from "./trajectory.ts";

/** Cached input at a tenth, output at eight times the price of input: GPT-5's price list (1.25, 0.125, 10 USD). */
const CACHED_PRICE = 0.1;
const OUTPUT_PRICE = 8;
/** Room that every policy must leave for the answer. */
export const MAX_OUTPUT_TOKENS = 4_000;

/** What a policy sees and changes between steps. */
export interface Policy {
  readonly name: string;
  readonly note?: string;
  /** Cuts a tool's output before it is stored. */
  limit(tool: string, output: string, index: number): string;
  /** Before a message of the person is added. */
  beforeUser?(replay: Replay): void;
  /** Between steps: may hide, replace, summarise. `overflow`: the request was refused for its length. */
  between(replay: Replay, overflow: boolean): Promise<void>;
  /** After a step's tools. */
  afterTools?(replay: Replay): void;
}

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

export interface Settings {
  readonly trajectory: Trajectory;
  readonly windowTokens: number;
  /** What stands before the messages in every request: system prompt and tools, as text. */
  readonly prefix: string;
}

const sizes = new WeakMap<StoredMessage, number>();
const counts = new Map<string, number>();

/** Real tokens of a text; o200k. */
export function countTokens(text: string): number {
  const known = counts.get(text);
  if (known !== undefined) return known;
  const tokens = encode(text).length;
  counts.set(text, tokens);
  return tokens;
}

/** Real tokens of a row as it is shown. */
export function rowTokens(row: StoredMessage): number {
  const known = sizes.get(row);
  if (known !== undefined) return known;
  const tokens = 4 + countTokens(wordsOf(shownMessage(row)));
  sizes.set(row, tokens);
  return tokens;
}

/** All that a model reads of a message. */
export function wordsOf(message: Message): string {
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
  /** Bill of the newest step; undefined after the view was changed under it. */
  last = { input: 0, output: 0 };
  /** The person came back to an empty cache: the next request is billed in full whatever it holds. */
  cold = false;
  /** Steps taken. */
  step = 0;
  rounds = 0;
  prunes = 0;
  readonly settings: Settings;
  readonly #cache = new PrefixCache();
  readonly #prefix: Segment;
  #sequence = 0;
  #billed = { fresh: 0, cached: 0, output: 0 };
  #summaries = 0;
  #overflows = 0;
  #ownOutput = 0;

  constructor(settings: Settings) {
    this.settings = settings;
    this.#prefix = { key: "prefix", tokens: countTokens(settings.prefix) };
  }

  get prefixTokens(): number {
    return this.#prefix.tokens;
  }

  /** Real tokens of the next request. */
  get requestTokens(): number {
    return this.rows.reduce((sum, row) => sum + rowTokens(row), this.prefixTokens);
  }

  get limitTokens(): number {
    return this.settings.windowTokens - MAX_OUTPUT_TOKENS;
  }

  liveRequest(): Segment[] {
    return [this.#prefix, ...this.rows.map((row) => ({ key: row, tokens: rowTokens(row) }))];
  }

  /** A summariser's call: billed as any other. */
  billSummary(request: readonly Segment[], outputTokens: number): void {
    this.#summaries += this.#bill(request, outputTokens);
  }

  nextSequence(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  async run(policy: Policy): Promise<Outcome> {
    const { trajectory } = this.settings;
    this.#append([user(trajectory.task)]);
    for (const [at, step] of trajectory.steps.entries()) {
      if (step.user !== undefined) this.#say(policy, step);
      await this.#makeRoom(policy);
      this.#answer(step);
      const outputs = step.calls.map((call, index) =>
        result(
          `call_${at}_${index}`,
          policy.limit(call.name, call.output, at),
          call.failed === true ? "error" : "completed",
          call.name,
        ),
      );
      this.#append(outputs);
      policy.afterTools?.(this);
    }
    return this.#outcome(trajectory);
  }

  #say(policy: Policy, step: TrajectoryStep): void {
    if (step.cold === true) this.#cache.forget();
    this.cold = step.cold === true;
    policy.beforeUser?.(this);
    this.#append([user(step.user ?? "")]);
  }

  /** As the loop does: a refused request is followed by a round, twice at most; then the oldest go. */
  async #makeRoom(policy: Policy): Promise<void> {
    await policy.between(this, false);
    for (let tries = 0; this.requestTokens > this.limitTokens; tries += 1) {
      this.#overflows += 1;
      if (tries < 2) await policy.between(this, true);
      else this.rows = dropOldest(this.rows);
    }
  }

  #answer(step: TrajectoryStep): void {
    const message = calls(
      step.text,
      ...step.calls.map(({ name, input }, index) => ({ id: `call_${this.step}_${index}`, name, input })),
    );
    const output = countTokens(wordsOf(message));
    const request = this.liveRequest();
    const input = request.reduce((sum, segment) => sum + segment.tokens, 0);
    this.#ownOutput += output;
    this.#bill(request, output);
    this.last = { input, output };
    this.cold = false;
    this.step += 1;
    this.#append([[message, { usage: { input, output } }]]);
  }

  #bill(request: readonly Segment[], output: number): number {
    const { input, cached } = this.#cache.send(request);
    this.#billed.fresh += input - cached;
    this.#billed.cached += cached;
    this.#billed.output += output;
    return input - cached + cached * CACHED_PRICE + output * OUTPUT_PRICE;
  }

  #append(messages: Parameters<typeof rowsOf>[0]): void {
    const from = this.#sequence + 1;
    const made = rowsOf(messages, from, this.step - (this.#isAnswer(messages) ? 1 : 0));
    this.#sequence += messages.length;
    this.rows = [...this.rows, ...made];
  }

  #isAnswer(messages: Parameters<typeof rowsOf>[0]): boolean {
    const [first] = messages;
    return Array.isArray(first) && (first[0] as Message).role === "assistant";
  }

  #outcome({ facts, steps }: Trajectory): Outcome {
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
      overflows: this.#overflows,
      facts: found(facts),
      factsOf: { rule: of("rule"), decision: of("decision"), path: of("path"), finding: of("finding") },
      summaries: this.#summaries / steps.length,
      ownOutput: (this.#ownOutput * OUTPUT_PRICE) / steps.length,
    };
  }
}

/** The oldest answer with its results, after a summary or the task. */
function dropOldest(rows: readonly StoredMessage[]): StoredMessage[] {
  const from = rows.findIndex((row) => row.kind === "answer");
  const next = rows.findIndex((row, at) => at > from && row.role !== "tool");
  return rows.filter((_, at) => at < from || at >= (next === -1 ? from + 1 : next));
}
