/** Body of any wire to the neutral form. Pure. @throws Refusal if the body is not what the format allows. */
import { isObject, text, type Json } from "./fields.ts";
import { parseGemini } from "./gemini/parse-gemini.ts";
import { parseMessages } from "./messages/parse-messages.ts";
import { parseChatItems, parseResponsesItems } from "./parse-openai.ts";
import { invalid, notOneOf, wrongType } from "./refusal.ts";
import type { Conversation, UncountedRequest, WireApi, WireTool } from "./wire.ts";

/**
 * The request without its token count.
 * @param named the model, if the address contains it
 * @throws Refusal for a body that is not JSON, not well-formed or not of the format
 */
export function parseRequest(
  { api, named }: { readonly api: WireApi; readonly named?: string },
  body: Buffer,
  headers: Readonly<Record<string, string>>,
): UncountedRequest {
  const raw = parseBody(body);
  const limit = limitOf(api, raw);
  return {
    api,
    model: named ?? text(raw["model"], "model"),
    stream: raw["stream"] === true,
    ...conversationOf(api, raw),
    maxOutputTokens: typeof limit === "number" ? limit : undefined,
    cacheKey: typeof raw["prompt_cache_key"] === "string" ? raw["prompt_cache_key"] : undefined,
    raw,
    headers,
    bytes: body.length,
  };
}

function conversationOf(api: WireApi, raw: Json): Conversation {
  switch (api) {
    case "responses":
      return { ...parseResponsesItems(raw), tools: parseTools(api, raw["tools"]) };
    case "chat":
      return { ...parseChatItems(raw), tools: parseTools(api, raw["tools"]) };
    case "messages":
      return parseMessages(raw);
    case "gemini":
      return parseGemini(raw);
  }
}

function limitOf(api: WireApi, raw: Json): unknown {
  const config = raw["generationConfig"];
  if (api === "gemini") return isObject(config) ? config["maxOutputTokens"] : undefined;
  if (api === "responses") return raw["max_output_tokens"];
  return (api === "chat" ? raw["max_completion_tokens"] : undefined) ?? raw["max_tokens"];
}

function parseBody(body: Buffer): Json {
  const unreadable =
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly.)";
  let raw: unknown;
  try {
    raw = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw invalid(unreadable);
  }
  if (!isObject(raw) || !isWellFormed(raw)) throw invalid(unreadable);
  return raw;
}

function isWellFormed(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (Array.isArray(value)) return value.every(isWellFormed);
  if (isObject(value))
    return Object.entries(value).every(([key, field]) => key.isWellFormed() && isWellFormed(field));
  return true;
}

function parseTools(api: "responses" | "chat", raw: unknown): WireTool[] {
  if (raw === undefined || raw === null) return [];
  if (!Array.isArray(raw)) throw wrongType("tools", "an array");
  return raw.map((entry: unknown, index) => {
    const path = `tools[${index}]${api === "chat" ? ".function" : ""}`;
    const tool = api === "chat" && isObject(entry) ? entry["function"] : entry;
    if (!isObject(entry) || entry["type"] !== "function" || !isObject(tool))
      throw notOneOf(path, ["function"], path);
    return {
      name: text(tool["name"], `${path}.name`),
      description: typeof tool["description"] === "string" ? tool["description"] : "",
      schema: tool["parameters"],
      strict: tool["strict"] === true ? true : undefined,
    };
  });
}
