/**
 * The one place in which what the AI SDK made of a provider's stream becomes our answer: `Listener` passes its pieces on while they
 * come, `toAnswer` reads the whole. What a server needs mended is mended before, in the wire's `fetch` and the package's own
 * settings (`wires/`).
 */
import type { StepResult, ToolSet, TextStreamPart } from "ai";
import type { Api } from "../config/model-target.ts";
import { fullModelName } from "../config/providers.ts";
import { cutChars } from "../text/cut.ts";
import { MAX_NESTING, Nesting } from "../process/bounded-body.ts";
import { toObject } from "../text/json.ts";
import { answerText, type AssistantPart, type ProviderData } from "../contract/message.ts";
import { ModelError, type ModelAnswer, type ModelRequest, type ModelDelta } from "./model.ts";
import { carriesData, COMPATIBLE_KEY, isBlank, ORIGIN_KEY, TAGGED } from "./request/reasoning.ts";
import { rulesOf } from "./request/wire-rules.ts";
import { splitThoughts, LeadingThoughts } from "./thoughts-in-text.ts";
import { windowMeasures } from "../config/budget.ts";
import { reportedCostUsd, trustedUsage } from "./usage.ts";
import type { Watchdog } from "./watchdog.ts";
import { writtenCalls } from "./written-calls.ts";

/** What the SDK gathered of one request. */
export type Step = Pick<
  StepResult<ToolSet>,
  "content" | "finishReason" | "rawFinishReason" | "usage" | "providerMetadata"
>;
/** A call of which no end has come, with its arguments so far. */
export interface UnfinishedCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: string;
}

/** Of an answer: texts, thoughts and arguments together. Chosen: the longest (128,000 tokens) have some 600,000. */
const MAX_ANSWER_CHARS = 4_000_000;
/** Of an answer: all of a step's calls may run at once. Chosen: providers take as many tools, and models write a dozen. */
const MAX_CALLS = 128;
/** Of the provider's words for an answer's end. Chosen: a sentence or two. */
const MAX_REASON_CHARS = 300;

export type UntimedAnswer = Omit<ModelAnswer, "firstTokenMs" | "durationMs">;

/** Listens to an answer while it streams: passes its pieces on, tells the watchdog of them, and remembers unfinished calls. */
export class AnswerListener {
  /** By `performance.now()`; undefined until a piece of the answer has arrived. */
  firstTokenAt: number | undefined;
  readonly #onDelta: (delta: ModelDelta) => void;
  readonly #watchdog: Watchdog;
  readonly #thoughts = new LeadingThoughts();
  readonly #open = new Map<
    string,
    { toolCallId: string; toolName: string; input: string; nesting: Nesting }
  >();
  #chars = 0;
  #calls = 0;

  constructor(onDelta: (delta: ModelDelta) => void, watchdog: Watchdog) {
    this.#onDelta = onDelta;
    this.#watchdog = watchdog;
  }

  /** Calls that have begun and have no end, in the order in which they began. */
  open(): UnfinishedCall[] {
    return [...this.#open.values()].map(({ toolCallId, toolName, input }) => ({
      toolCallId,
      toolName,
      input,
    }));
  }

  /** @throws what the provider or the SDK reports instead of an answer; ModelError once it is more than any answer */
  take(part: TextStreamPart<ToolSet>): void {
    if (part.type === "error") throw isCutOff(part.error) ? cutOff() : part.error;
    if (part.type === "reasoning-start") return this.#watchdog.thinking();
    if (part.type === "text-delta" || part.type === "reasoning-delta") {
      if (part.text === "") return;
      this.#count(part.text);
      if (part.type === "text-delta") this.#thoughts.take(part.text).forEach(this.#onDelta);
      else this.#onDelta({ type: "reasoning", text: part.text });
    } else if (part.type === "tool-input-start") this.#begin(part.id, part.toolName);
    else if (part.type === "tool-input-delta") this.#write(part.id, part.delta);
    else if (part.type === "tool-call") {
      // Some packages give a call only when it is complete.
      if (!this.#open.has(part.toolCallId)) this.#begin(part.toolCallId, part.toolName);
      this.#open.delete(part.toolCallId);
    } else if (part.type === "text-end") this.#thoughts.end().forEach(this.#onDelta);
    else if (part.type !== "reasoning-end") return;
    this.firstTokenAt ??= performance.now();
    this.#watchdog.heard();
  }

  #begin(toolCallId: string, toolName: string): void {
    if ((this.#calls += 1) > MAX_CALLS) throw unread(`has more than ${MAX_CALLS} calls of tools`);
    this.#open.set(toolCallId, { toolCallId, toolName, input: "", nesting: new Nesting() });
    this.#onDelta({ type: "tool-call", toolName });
  }

  #write(id: string, delta: string): void {
    const call = this.#open.get(id);
    if (call === undefined) return;
    this.#count(delta);
    if (call.nesting.isTooDeep(delta))
      throw unread(`has a call with more than ${MAX_NESTING} lists and objects in one another`);
    call.input += delta;
    this.#onDelta({ type: "tool-input", text: delta });
  }

  #count(text: string): void {
    if ((this.#chars += text.length) > MAX_ANSWER_CHARS)
      throw unread(`has more than ${MAX_ANSWER_CHARS / 1_000_000} million characters`);
  }
}

/** One more try, and then the session ends: nothing of it was stored. */
const unread = (what: string) =>
  new ModelError(`The model's answer ${what}, so the rest was not read, and nothing of it was kept.`, {
    class: "malformed",
    heard: true,
  });

/** The chat package's words for a stream that ended early, and the SDK's for one that held nothing. Test: "ended without its last event". */
function isCutOff(error: unknown): boolean {
  return error instanceof Error && /ended without a finish (?:reason|chunk)/.test(error.message);
}

/**
 * @param step undefined if the stream ended without an end of its own
 * @param open what the SDK leaves out of its content
 * @param mask removes secrets from the provider's words
 * @throws {ModelError} if the answer is not complete, or was refused
 */
export function toAnswer(
  step: Step | undefined,
  open: readonly UnfinishedCall[],
  { target, tools }: Pick<ModelRequest, "target" | "tools">,
  mask: (text: string) => string = (text) => text,
): UntimedAnswer {
  if (step === undefined || step.finishReason === "interrupted") throw cutOff();
  const metadata = (step.providerMetadata ?? {}) as ProviderData;
  const parts = [
    ...withKept(withoutThoughts(partsOf(step)), metadata[COMPATIBLE_KEY]),
    // Test: "keeps a call that the output limit cut in the middle of its arguments". The tool runner answers it.
    ...open.map((call): AssistantPart => ({ type: "tool-call", ...call })),
  ];
  // What the output limit has cut is never completed.
  const reads = rulesOf(target).callsInText && step.finishReason !== "length";
  const content = (reads ? withWrittenCalls(parts, tools) : parts).flatMap((part) =>
    withOrigin(part, fullModelName(target.model)),
  );
  const finish = finishOf(step, content, target.api);
  const reason = mask(reasonOf(step, metadata));
  if (finish === "content-filter" && saysNothing(content)) throw refused(reason);
  const costUsd = reportedCostUsd(step.usage);
  const tier = target.tier === undefined ? undefined : servedTier(metadata);
  return {
    content,
    finish,
    reason: reason === "" || finish === "tool-calls" ? undefined : reason,
    usage: trustedUsage(step.usage, windowMeasures(target).usageTokens),
    costUsd,
    tier,
  };
}

const cutOff = () =>
  new ModelError("The provider's stream ended before its answer was complete.", { class: "unavailable" });

/** Whether an answer has neither a call nor a word: a text of blanks is none. */
export const saysNothing = (content: readonly AssistantPart[]): boolean =>
  content.every((part) => part.type === "reasoning" || (part.type === "text" && isBlank(part.text)));

const refused = (reason: string) =>
  new ModelError(
    `The provider refused the request and gave no answer${reason === "" ? "" : ` (${reason})`}.`,
    { class: "rejected" },
  );

/** Words that say nothing beyond what `finish` says. */
const PLAIN =
  /^(?:stop|end_turn|tool_calls|tool_use|length|max_tokens|max_output_tokens|STOP|MAX_TOKENS|content_filter|completed)$/;

/** The provider's own words for the answer's end, if they say more: Google's message, Anthropic's details, an unusual word. */
function reasonOf({ rawFinishReason: word = "" }: Step, { google, anthropic }: ProviderData): string {
  const details = toObject(anthropic?.["stopDetails"]);
  const reasons = [
    PLAIN.test(word) ? "" : word,
    google?.["finishMessage"],
    toObject(google?.["promptFeedback"])["blockReasonMessage"],
    details["category"],
    details["explanation"],
  ];
  return cutChars(
    reasons.filter((text) => typeof text === "string" && text !== "").join(": "),
    MAX_REASON_CHARS,
  );
}

/** Thoughts that the first text begins with are no part of the answer. */
function withoutThoughts(parts: readonly AssistantPart[]): AssistantPart[] {
  const first = parts.find((part) => part.type === "text");
  return parts.flatMap((part): AssistantPart[] => {
    if (part !== first || part.type !== "text") return [part];
    const { thoughts, text } = splitThoughts(part.text);
    if (text === part.text) return [part];
    const thought = { type: "reasoning", text: thoughts, providerOptions: TAGGED } as const;
    return [...(thoughts === "" ? [] : [thought]), { ...part, text }];
  });
}

/** Where the whole answer is calls. Their ids are made unique when they are stored. */
function withWrittenCalls(parts: readonly AssistantPart[], tools: ModelRequest["tools"]): AssistantPart[] {
  if (parts.some((part) => part.type === "tool-call")) return [...parts];
  const written = writtenCalls(answerText(parts), tools);
  if (written?.isWhole !== true) return [...parts];
  return [
    ...parts.filter((part) => part.type !== "text"),
    ...written.calls.map((call, index): AssistantPart => ({
      type: "tool-call",
      toolCallId: `text_${index}`,
      ...call,
    })),
  ];
}

/** The SDK's own verdicts on a call (`tool-error`) are left out: the ledger has the tool runner's. */
function partsOf({ content }: Step): AssistantPart[] {
  return content.flatMap((part): AssistantPart[] => {
    if (part.type === "text" || part.type === "reasoning")
      return [{ type: part.type, text: part.text, ...dataOf(part.providerMetadata) }];
    if (part.type !== "tool-call") return [];
    const { type, toolCallId, toolName, input, providerMetadata } = part;
    return [{ type, toolCallId, toolName, input: objectOrText(input), ...dataOf(providerMetadata) }];
  });
}

/** Reasoning of a compatible server has to be sent back in its own form, even if no text of it has arrived. */
function withKept(parts: readonly AssistantPart[], data: ProviderData[string] = {}): AssistantPart[] {
  const ownForm = Object.fromEntries(
    Object.entries(data).filter(([name]) => ["field", "details"].includes(name)),
  );
  if (Object.keys(ownForm).length === 0) return [...parts];
  const first = parts.find((part) => part.type === "reasoning") ?? { type: "reasoning", text: "" };
  const { [COMPATIBLE_KEY]: own, ...others } = first.providerOptions ?? {};
  const whole = { ...first, providerOptions: { ...others, [COMPATIBLE_KEY]: { ...own, ...ownForm } } };
  return parts.includes(first) ? parts.map((part) => (part === first ? whole : part)) : [whole, ...parts];
}

/** Provider data is sent back to the model that made it, and to no other. Empty parts are left out, unless they carry data. */
function withOrigin(part: AssistantPart, model: string): AssistantPart[] {
  if (part.type !== "tool-call" && part.text === "" && !(part.type === "reasoning" && carriesData(part)))
    return [];
  if (part.type !== "reasoning" && part.providerOptions === undefined) return [part];
  return [{ ...part, providerOptions: { ...part.providerOptions, [ORIGIN_KEY]: { model } } }];
}

/**
 * Calls count, whatever the provider reports. Test: "lets calls count, whatever the finish reason says". A word that nobody knows,
 * after a text that ended regularly, is an answer; not on the Responses wire, which has such words for cut answers only.
 */
function finishOf(
  { finishReason, rawFinishReason: word }: Step,
  content: readonly AssistantPart[],
  api: Api,
): ModelAnswer["finish"] {
  const isOdd = finishReason === "other" || finishReason === "error";
  const unknown = api === "responses" || saysNothing(content) ? finishReason : "stop";
  const reason = isOdd && word ? (meaningOfFinish(word) ?? unknown) : finishReason;
  if (reason === "length" || reason === "content-filter") return reason;
  if (content.some((part) => part.type === "tool-call")) return "tool-calls";
  return reason === "stop" || reason === "error" ? reason : "other";
}

/** Until the answer is complete, a provider repeats what was asked for; the packages report its last word. */
function servedTier(metadata: ProviderData): string | undefined {
  return Object.values(metadata)
    .map(({ serviceTier }) => serviceTier)
    .filter((tier) => typeof tier === "string")
    .map((tier) => tier.toLowerCase())
    .find((tier) => tier !== "auto");
}

/** A model's arguments are an object; anything else is kept as text. Test: "keeps calls with broken arguments and unknown names". */
function objectOrText(input: unknown): unknown {
  if (typeof input === "string" || (typeof input === "object" && input !== null && !Array.isArray(input)))
    return input;
  return JSON.stringify(input ?? null);
}

function dataOf(metadata: unknown): { providerOptions?: ProviderData } {
  const entries = Object.entries((metadata ?? {}) as ProviderData).flatMap(([provider, data]) => {
    const filled = Object.entries(data).filter(([, value]) => value !== null && value !== undefined);
    return filled.length === 0 ? [] : [[provider, Object.fromEntries(filled)] as const];
  });
  return entries.length === 0 ? {} : { providerOptions: Object.fromEntries(entries) };
}

/** What a server's word for an answer's end means; `other`: it ended in another way than by itself; undefined: the word is not known. */
export type FinishMeaning = "stop" | "length" | "content-filter" | "error" | "tool-calls" | "other";

/** Words for "the model stopped by itself", in letters and digits only. Source: public reports on servers of the chat wire. */
const STOPPED: ReadonlySet<string> = new Set(
  `stop stopped stopsequence stoptoken endturn endofturn turnend eos eostoken eosfound endofsequence endoftext eot eotid eom eomid
  imend im end ended s complete completed done finish finished success succeeded normal natural ok`.split(
    /\s+/,
  ),
);

/**
 * Stems, the first that occurs in the word counts. A failure comes before the limits: `rate_limit`. A word that only says that
 * something else has happened is no regular end. Source: as above; Google's list of finish reasons.
 */
const STEMS: readonly (readonly [RegExp, FinishMeaning])[] = [
  [/malformed|unexpectedtool|toomanytool|missingthought/, "error"],
  [/toolcall|tooluse|functioncall|^tools?$|^functions?$/, "tool-calls"],
  [
    /filter|safety|sensitive|moderat|refus|block|policy|prohibit|recitation|spii|guardrail|flagged|unsafe|censor/,
    "content-filter",
  ],
  [
    /error|fail|abort|cancel|time(?:d)?out|interrupt|exception|overload|network|unavailable|ratelimit|disconnect|crash/,
    "error",
  ],
  [
    /length|maxtoken|max\w*token|tokenlimit|maxoutput|truncat|context(?:window|limit|full)|cutoff|budget/,
    "length",
  ],
  [
    /^(?:other|unknown|unspecified|finishreasonunspecified|finishreasonother|null|none|language|incomplete)$/,
    "other",
  ],
];

/** @param word as the server writes it, in any case: `eos`, `END_TURN`, `FinishReason.STOP`, `<|im_end|>` */
export function meaningOfFinish(word: string): FinishMeaning | undefined {
  const plain = word
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .replace(/^(?:finish|stop)reason(?=.)/, "");
  if (STOPPED.has(plain)) return "stop";
  return STEMS.find(([stem]) => stem.test(plain))?.[1];
}
