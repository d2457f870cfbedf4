/**
 * Repairs what compatible servers send on the chat wire that the SDK would misread or refuse, and keeps what it would drop:
 * an error in the middle, and the reasoning's own form. Sources: docs/models.md, each row from public reports.
 */
import type { JSONValue } from "ai";
import { isJsonObject, objectOf } from "../../contract/json-object.ts";
import type { Piece, StreamEvent } from "../stream-events.ts";
import { usageInChunk } from "../usage.ts";
import { chatEvents } from "./whole-answers.ts";

const FIELDS = ["reasoning_content", "reasoning"] as const;
const TEXTS: ReadonlySet<string> = new Set(["content", ...FIELDS]);

export class ChatStream {
  #field: string | undefined;
  readonly #details: StreamEvent[] = [];
  #serviceTier: string | undefined;

  /** One chunk as the SDK reads it; undefined for one without content. */
  readonly repair = (chunk: StreamEvent): StreamEvent | undefined => {
    const { choices, service_tier: tier } = chunk;
    if (typeof tier === "string") this.#serviceTier = tier;
    const choice = Array.isArray(choices) ? (choices[0] as unknown) : undefined;
    const error = errorOf(chunk, choice);
    if (error !== undefined) return { error };
    if (!isJsonObject(choice)) return this.#withoutChoice(chunk);
    const { error: _, ...rest } = chunk;
    const delta = isJsonObject(choice["delta"]) ? this.#delta(choice["delta"]) : choice["delta"];
    const usage = usageInChunk(chunk);
    return { ...rest, ...(usage === undefined ? {} : { usage }), choices: [{ ...choice, delta }] };
  };

  /** An answer that came as one value. */
  readonly whole = (body: unknown): readonly StreamEvent[] | undefined => {
    if (errorOf(objectOf(body), undefined) !== undefined) return undefined;
    return chatEvents(body)?.flatMap((chunk): StreamEvent[] => {
      const repaired = this.repair(chunk);
      return repaired === undefined ? [] : [repaired];
    });
  };

  /** A chunk that has a text and nothing else. */
  readonly piece = (chunk: StreamEvent): Piece | undefined => {
    const [choice, ...others] = Array.isArray(chunk["choices"]) ? (chunk["choices"] as unknown[]) : [];
    if (others.length > 0 || !isJsonObject(choice) || !isJsonObject(choice["delta"])) return undefined;
    if (chunk["usage"] != null || chunk["error"] != null || choice["finish_reason"] != null) return undefined;
    const said = Object.entries(choice["delta"]).filter(([, value]) => value != null);
    const [field = "", text] = said[0] ?? [];
    if (said.length !== 1 || typeof text !== "string" || !TEXTS.has(field)) return undefined;
    const saying = (words: string) => ({ ...chunk, choices: [{ ...choice, delta: { [field]: words } }] });
    return { of: field, text, with: saying };
  };

  /** What the package would drop: how the server names its reasoning, its parts as they must be sent back, and its tier of service. */
  kept(): Record<string, JSONValue> {
    return {
      ...(this.#field === undefined || this.#field === FIELDS[0] ? {} : { field: this.#field }),
      ...(this.#details.length === 0 ? {} : { details: this.#details as JSONValue[] }),
      ...(this.#serviceTier === undefined ? {} : { serviceTier: this.#serviceTier }),
    };
  }

  /** A bill is passed on. A keep-alive is dropped: the watchdog has seen its bytes already. */
  #withoutChoice(chunk: StreamEvent): StreamEvent | undefined {
    const usage = usageInChunk(chunk);
    return usage === undefined ? undefined : { ...chunk, usage, choices: [] };
  }

  #delta(delta: StreamEvent): StreamEvent {
    const { role: _, reasoning_details: details, tool_calls: calls, ...others } = delta;
    const rest: Record<string, unknown> = { ...others };
    for (const field of FIELDS) {
      if (typeof rest[field] !== "string") delete rest[field];
      else if (rest[field] !== "") this.#field ??= field;
    }
    if (Array.isArray(details)) {
      const parts = details.filter(isJsonObject);
      for (const part of parts) this.#keep(part);
      const said = parts
        .map((part) => part["text"] ?? part["summary"])
        .filter((text) => typeof text === "string");
      if (FIELDS.every((field) => rest[field] === undefined) && said.length > 0)
        rest["reasoning"] = said.join("");
    }
    return {
      ...rest,
      ...(Array.isArray(calls) ? { tool_calls: calls.filter(isJsonObject).map(callOf) } : {}),
    };
  }

  /** Pieces of one text become one part, the form in which it must be sent back. Source: OpenRouter's guide on reasoning tokens. */
  #keep(part: StreamEvent): void {
    const last = this.#details.at(-1);
    const key = ["text", "summary"].find((name) => typeof part[name] === "string");
    const follows = last !== undefined && last["type"] === part["type"] && last["index"] === part["index"];
    const filled = Object.fromEntries(Object.entries(part).filter(([, value]) => value !== null));
    if (!follows || part["type"] === "reasoning.encrypted") this.#details.push(filled);
    else
      Object.assign(
        last,
        filled,
        key === undefined ? {} : { [key]: `${textOf(last[key])}${textOf(part[key])}` },
      );
  }
}

/** An answer that broke off without a word on why may be given whole the next time. */
const BROKE_OFF = "server_error";

/** The error is next to the choices, within one, or only in its finish reason. */
function errorOf(chunk: StreamEvent, choice: unknown): StreamEvent | undefined {
  const own = isJsonObject(choice) ? choice["error"] : undefined;
  const error = chunk["error"] ?? own;
  if (isJsonObject(error)) return { ...error, message: wordsOf(error) };
  if (typeof error === "string" && error !== "") return { code: BROKE_OFF, message: error };
  const words = chunk["msg"] ?? chunk["message"] ?? chunk["error_msg"];
  if (choice === undefined && typeof words === "string" && words !== "") return { ...chunk, message: words };
  if (!isJsonObject(choice) || choice["finish_reason"] !== "error") return undefined;
  return {
    code: BROKE_OFF,
    message: "The provider ended its answer in the middle with the finish reason `error`.",
  };
}

/** A router adds the provider's own words to its own. */
function wordsOf(error: StreamEvent): string {
  const raw = isJsonObject(error["metadata"]) ? textOf(error["metadata"]["raw"]) : "";
  return [textOf(error["message"]), raw].filter((text) => text !== "").join(": ") || JSON.stringify(error);
}

function callOf(call: StreamEvent): StreamEvent {
  const written = isJsonObject(call["function"]) ? call["function"] : {};
  const { arguments: input } = written;
  const isText = typeof input === "string" || input === null || input === undefined;
  return { ...call, function: isText ? written : { ...written, arguments: JSON.stringify(input) } };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
