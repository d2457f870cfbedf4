/**
 * Asks a provider how many tokens a request has: at Anthropic, at Google and at Vertex that is free. A server that speaks their
 * wires but lacks it is remembered, so that it is not asked again.
 */
import type { Api, Provider } from "../config/model-target.ts";
import { readJson } from "../process/bounded-body.ts";
import type { Fetch } from "../process/outgoing-fetch.ts";
import { editBody, type FieldEdit } from "./refusals/body-fields.ts";

/** Longest wait for a count: what a count may add to a step. Chosen: a count takes some 0.2 s. */
export const COUNT_MS = 2_000;
/** After a failure that may pass, the estimate decides for this long. Chosen: a count saves little, and a failed one costs time. */
const REST_MS = 10 * 60_000;
/** What a server answers that has no such address. */
const LACKS: ReadonlySet<number> = new Set([404, 405, 410, 501]);

type Body = Record<string, unknown>;

interface CountCall {
  readonly url: string;
  readonly body: Body;
  /** The field of the answer that has the number. */
  readonly field: "input_tokens" | "totalTokens";
}

interface Place {
  readonly api: Api;
  readonly modelId: string;
  readonly preset: Provider["preset"];
  /** Changes of the body that this server needs. */
  readonly fieldEdits?: readonly FieldEdit[];
}

/** What counts among the fields of a request; a count refuses the others. */
const MESSAGES_FIELDS = ["model", "messages", "system", "tools", "tool_choice", "thinking"];
const GEMINI_FIELDS = ["contents", "systemInstruction", "tools", "toolConfig"];
const VERTEX_FIELDS = ["contents", "systemInstruction", "tools"];

/**
 * The count for a request as it would be sent.
 * Sources: platform.claude.com/docs/en/api/messages/count_tokens; ai.google.dev/api/tokens; for Vertex, CountTokensRequest of its
 * v1 API, and docs.cloud.google.com "Count tokens for Claude models".
 * @returns undefined where no free count is known
 */
export function toCountCall(
  { api, modelId, preset }: Place,
  address: string,
  sent: Body,
): CountCall | undefined {
  const url = new URL(address);
  if (api === "messages") {
    url.pathname =
      preset === "vertex-claude"
        ? url.pathname.replace(/\/messages$/, "/models/count-tokens:rawPredict")
        : `${url.pathname}/count_tokens`;
    return { url: url.toString(), body: only(sent, MESSAGES_FIELDS), field: "input_tokens" };
  }
  if (api !== "gemini") return undefined;
  url.pathname = url.pathname.replace(/:\w+$/, ":countTokens");
  url.searchParams.delete("alt");
  const body =
    preset === "vertex-gemini"
      ? only(sent, VERTEX_FIELDS)
      : { generateContentRequest: { model: `models/${modelId}`, ...only(sent, GEMINI_FIELDS) } };
  return { url: url.toString(), body, field: "totalTokens" };
}

function only(body: Body, names: readonly string[]): Body {
  return Object.fromEntries(names.flatMap((name) => (name in body ? [[name, body[name]]] : [])));
}

/** Which servers may be asked, for one process. */
export class TokenCounts {
  readonly #restUntilMs = new Map<string, number>();

  /** @param server its address, and what else decides whether it can count */
  mayAsk(server: string, nowMs: number): boolean {
    return nowMs >= (this.#restUntilMs.get(server) ?? 0);
  }

  /** @param status undefined: it gave no answer in time, or one without a number */
  failed(server: string, status: number | undefined, nowMs: number): void {
    this.#restUntilMs.set(server, status !== undefined && LACKS.has(status) ? Infinity : nowMs + REST_MS);
  }
}

/**
 * A `fetch` that sends the count in place of the request. It throws in any case: there is no answer to read.
 * @param onCount called with the number; or with the status of an answer that has none
 */
export function countingFetch(
  send: Fetch,
  wire: Place,
  onCount: (counted: { readonly tokens?: number; readonly status: number }) => void,
): Fetch {
  return async (input, init) => {
    const address = input instanceof Request ? input.url : input.toString();
    const sent = typeof init?.body === "string" ? (JSON.parse(init.body) as Body) : {};
    const call = toCountCall(wire, address, editBody(sent, wire.fieldEdits ?? []));
    if (call !== undefined) {
      const response = await send(call.url, { ...init, body: JSON.stringify(call.body) });
      const answer = response.ok ? ((await readJson(response)) as Body | null) : null;
      const tokens = answer?.[call.field];
      const isCount = typeof tokens === "number" && Number.isFinite(tokens) && tokens > 0;
      onCount({ status: response.status, tokens: isCount ? tokens : undefined });
    }
    throw new Counted();
  };
}

/** Ends the SDK's request, whose place the count took. */
class Counted extends Error {
  override readonly name = "Counted";
}
