/** Fields of our requests that a server refuses: optional ones, and an output limit that is too high. */
import { shorten } from "../../text/cut.ts";
import { isJsonObject, type JsonObject } from "../../text/json.ts";
import type { Endpoint } from "../endpoint.ts";
import { readErrorFacts } from "../error-facts.ts";
import { type ModelError, isRefusal, type ModelAnswer, type ModelRequest } from "../model.ts";
import { NO_CALLS } from "../request/wire-rules.ts";
import { editBody, editFor, type FieldEdit } from "./body-fields.ts";
import { type Ask, RefusalMemory, type Refusals } from "./refusals.ts";

/** Longest quote of the provider's message. */
const MAX_WHY_CHARS = 300;
/** Most fields that one request learns of. Chosen: each costs a request. */
const MOST_FIELDS = 4;

interface Learned {
  readonly edit: FieldEdit;
  readonly why: string;
}

/**
 * Optional fields that a server refuses by name, or demands: the request is repeated without them, or with them, and so is every
 * later one to this server. The operator's own fields (`body`) are sent as they are.
 */
export class FieldRefusals implements Refusals {
  readonly #memory = new RefusalMemory<readonly Learned[]>();

  async ask(request: ModelRequest, endpoint: Endpoint, ask: Ask): Promise<ModelAnswer> {
    const known = this.#memory.why(endpoint, "fields") ?? [];
    const learned = [...known];
    let first: ModelError | undefined;
    for (;;) {
      const edits = learned.map(({ edit }) => edit);
      try {
        const answer = await ask(edited(request, edits));
        if (learned.length > known.length) this.#memory.add(endpoint, "fields", learned);
        return leftOut(answer, learned, known);
      } catch (error) {
        if (!isRefusal(error) || (error.status !== 400 && error.status !== 422)) throw error;
        first ??= error;
        const edit = learned.length - known.length < MOST_FIELDS && nextEdit(error, request, edits);
        // A guess that did not help is no news: the first refusal is what people need.
        if (!edit) throw first;
        learned.push({ edit, why: shorten(error.message, MAX_WHY_CHARS) });
      }
    }
  }
}

function edited(request: ModelRequest, fieldEdits: readonly FieldEdit[]): ModelRequest {
  if (fieldEdits.length === 0) return request;
  // Where calls cannot be forbidden, the tools are left out.
  const mayCall = !fieldEdits.some(({ name }) => /^tool_?[cC]/.test(name));
  return { ...request, fieldEdits, ...(request.noCalls === true && !mayCall ? { tools: [] } : {}) };
}

/** Told to people like other content that is left out; what is only renamed or added changes nothing for them. */
function leftOut(answer: ModelAnswer, learned: readonly Learned[], known: readonly Learned[]): ModelAnswer {
  const parts = learned
    .filter(({ edit }) => edit.type.startsWith("without"))
    .map((one) => ({
      mediaType: "field",
      filename: one.edit.name,
      why: one.why,
      isNew: !known.includes(one),
    }));
  return parts.length === 0
    ? answer
    : { ...answer, refusedParts: [...(answer.refusedParts ?? []), ...parts] };
}

/** @returns undefined if the refusal names none of our fields, or one that was changed already */
function nextEdit(
  error: ModelError,
  { target, noCalls }: ModelRequest,
  edits: readonly FieldEdit[],
): FieldEdit | undefined {
  const sent: JsonObject = {
    ...sentBody(error.cause),
    ...(target.tier === undefined || target.api === "gemini" ? {} : { service_tier: target.tier }),
    ...(noCalls === true ? NO_CALLS[target.api] : {}),
  };
  const own = Object.keys(target.body ?? {});
  const ours = Object.fromEntries(
    Object.entries(editBody(sent, edits)).filter(([name]) => !own.includes(name)),
  );
  const edit = editFor(readErrorFacts(error.cause), ours);
  const isOld =
    edit !== undefined && edits.some(({ type, name }) => type === edit.type && name === edit.name);
  return isOld || (edit?.type === "renamed" && edits.some(({ type }) => type === "renamed"))
    ? undefined
    : edit;
}

/** The SDK's error has the body that it made. */
function sentBody(cause: unknown): JsonObject {
  for (let link = cause, depth = 0; link instanceof Object && depth < 8; depth += 1) {
    const { requestBodyValues, cause: next, lastError } = link as Record<string, unknown>;
    if (isJsonObject(requestBodyValues)) return requestBodyValues;
    link = next ?? lastError;
  }
  return {};
}

/** Models whose output limit is lower than assumed: asked again with the limit that their provider names. */
export class OutputRefusals implements Refusals {
  readonly #memory = new RefusalMemory<number>();

  async ask(request: ModelRequest, endpoint: Endpoint, ask: Ask): Promise<ModelAnswer> {
    const known = this.#memory.why(endpoint, "output") ?? Infinity;
    const limited = { ...request, maxOutputTokens: Math.min(request.maxOutputTokens, known) };
    try {
      return await ask(limited);
    } catch (error) {
      const most = mostTokens(error, limited.maxOutputTokens);
      if (most === undefined) throw error;
      this.#memory.add(endpoint, "output", most);
      return ask({ ...limited, maxOutputTokens: most });
    }
  }
}

/**
 * The limit that a refusal names: the largest number below what was asked for.
 * Source: OpenAI, "max_tokens is too large: 32768. This model supports at most 16384 completion tokens", "Invalid
 * 'max_output_tokens': integer above maximum value. Expected a value <= 16384"; Anthropic, "max_tokens: 128000 > 64000"; DeepSeek,
 * "the valid range of max_tokens is [1, 8192]"; Google, "from 1 (inclusive) to 65537 (exclusive)"; Groq, "must be less than or
 * equal to `8192`".
 */
function mostTokens(error: unknown, askedTokens: number): number | undefined {
  if (!isRefusal(error)) return undefined;
  const { text, param = "" } = readErrorFacts(error.cause);
  if (!/max_?(?:completion_?|output_?|new_?)?tokens/i.test(`${text} ${param}`)) return undefined;
  const numbers = [...text.matchAll(/\b\d+\b/g)].map(([digits]) => Number(digits));
  const most = Math.max(0, ...numbers.filter((number) => number < askedTokens));
  return most > 1 ? most - (text.includes("(exclusive)") ? 1 : 0) : undefined;
}
