/**
 * The one place in which what the AI SDK made of a provider's stream becomes our answer. Pure.
 * What a server needs mended is mended before, in the wire's `fetch` and the package's own settings (`wires/`).
 */
import type { StepResult, ToolSet } from "ai";
import type { AssistantPart, ProviderData } from "../contract/message.ts";
import { fullModelName } from "../config/providers.ts";
import { ModelError, type ModelAnswer, type ModelRequest } from "./model.ts";
import { carriesData, COMPATIBLE_KEY, ORIGIN_KEY } from "./request/reasoning.ts";
import { reportedCostUsd, trustedUsage } from "./usage.ts";

/** What the SDK gathered of one request. */
export type Step = Pick<StepResult<ToolSet>, "content" | "finishReason" | "usage" | "providerMetadata">;
/** A call of which no end has come, with its arguments so far. */
export interface OpenCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: string;
}

export type ReadAnswer = Omit<ModelAnswer, "firstTokenMs" | "durationMs">;

/**
 * @param step undefined if the stream ended without an end of its own
 * @param open what the SDK leaves out of its content
 * @throws {ModelError} if the answer is not complete
 */
export function toAnswer(
  step: Step | undefined,
  open: readonly OpenCall[],
  { target }: Pick<ModelRequest, "target">,
): ReadAnswer {
  if (step === undefined || step.finishReason === "interrupted") throw cutOff();
  const metadata = (step.providerMetadata ?? {}) as ProviderData;
  const content = [
    ...withKept(partsOf(step), metadata[COMPATIBLE_KEY]),
    // Test: "keeps a call that the output limit cut in the middle of its arguments". The tool runner answers it.
    ...open.map((call): AssistantPart => ({ type: "tool-call", ...call })),
  ].flatMap((part) => withOrigin(part, fullModelName(target.model)));
  const costUsd = reportedCostUsd(step.usage);
  const tier = target.tier === undefined ? undefined : servedTier(metadata);
  return {
    content,
    finish: finishOf(step.finishReason, content),
    usage: trustedUsage(step.usage, target.contextWindow),
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(tier === undefined ? {} : { tier }),
  };
}

export const cutOff = () =>
  new ModelError("The provider's stream ended before its answer was complete.", { class: "unavailable" });

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
  const kept = Object.fromEntries(
    Object.entries(data).filter(([name]) => ["field", "details"].includes(name)),
  );
  if (Object.keys(kept).length === 0) return [...parts];
  const first = parts.find((part) => part.type === "reasoning") ?? { type: "reasoning", text: "" };
  const whole = { ...first, providerOptions: { ...first.providerOptions, [COMPATIBLE_KEY]: kept } };
  return parts.includes(first) ? parts.map((part) => (part === first ? whole : part)) : [whole, ...parts];
}

/** Provider data is sent back to the model that made it, and to no other. Empty parts are left out, unless they carry data. */
function withOrigin(part: AssistantPart, model: string): AssistantPart[] {
  if (part.type !== "tool-call" && part.text === "" && !(part.type === "reasoning" && carriesData(part)))
    return [];
  if (part.type !== "reasoning" && part.providerOptions === undefined) return [part];
  return [{ ...part, providerOptions: { ...part.providerOptions, [ORIGIN_KEY]: { model } } }];
}

/** Calls count, whatever the provider reports. Test: "lets calls count, whatever the finish reason says". */
function finishOf(reason: Step["finishReason"], content: readonly AssistantPart[]): ModelAnswer["finish"] {
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
  const kept = Object.entries((metadata ?? {}) as ProviderData).flatMap(([provider, data]) => {
    const filled = Object.entries(data).filter(([, value]) => value !== null && value !== undefined);
    return filled.length === 0 ? [] : [[provider, Object.fromEntries(filled)] as const];
  });
  return kept.length === 0 ? {} : { providerOptions: Object.fromEntries(kept) };
}
