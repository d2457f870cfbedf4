/** Key, model and size of a request: each wire refuses in its own words. Pure. */
import type { Dialect } from "./dialects/dialect.ts";
import { invalid, Refusal } from "./refusal.ts";
import type { ParsedRequest, ServedModel, WireApi } from "./wire.ts";

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** @throws Refusal without a key, or with another than the expected one */
export function checkKey(
  api: WireApi,
  headers: Headers,
  dialect: Dialect,
  apiKey: string | null | undefined,
): void {
  if (dialect.key === "none" || apiKey === null) return;
  const key = keyOf(api, headers, dialect);
  if (key === undefined || key === "") throw missingKey(api, dialect);
  if (apiKey !== undefined && key !== apiKey) throw wrongKey(api, key);
  if (api === "messages" && headers["anthropic-version"] === undefined)
    throw invalid("anthropic-version: header is required");
}

function keyOf(api: WireApi, headers: Headers, dialect: Dialect): string | undefined {
  const name = { responses: "", chat: "", messages: "x-api-key", gemini: "x-goog-api-key" }[api];
  const key = dialect.key === "api-key" ? headers["api-key"] : headers[name];
  if (typeof key === "string") return key;
  if (dialect.key === "api-key" || api === "messages" || api === "gemini") return undefined;
  return /^Bearer (\S+)$/.exec(String(headers["authorization"] ?? ""))?.[1];
}

function missingKey(api: WireApi, dialect: Dialect): Refusal {
  if (api === "messages") return new Refusal(401, "x-api-key header is required");
  if (api === "gemini") {
    return new Refusal(
      403,
      "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
    );
  }
  if (dialect.key === "api-key") {
    return new Refusal(
      401,
      "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.",
      "401",
    );
  }
  return new Refusal(
    401,
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
  );
}

function wrongKey(api: WireApi, key: string): Refusal {
  if (api === "messages") return new Refusal(401, "invalid x-api-key");
  if (api === "gemini") return invalid("API key not valid. Please pass a valid API key.");
  return new Refusal(
    401,
    `Incorrect API key provided: ${key.slice(0, 4)}***. You can find your API key at https://platform.openai.com/account/api-keys.`,
    "invalid_api_key",
  );
}

/** The answer to a request for an unknown model. */
export function unknownModel(api: WireApi, name: string): Refusal {
  switch (api) {
    case "responses":
      return invalid(`The requested model '${name}' does not exist.`, "model_not_found", "model");
    case "chat":
      return new Refusal(
        404,
        `The model \`${name}\` does not exist or you do not have access to it.`,
        "model_not_found",
      );
    case "messages":
      return new Refusal(404, `model: ${name}`);
    case "gemini":
      return new Refusal(
        404,
        `models/${name} is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.`,
      );
  }
}

/** @throws Refusal if the request is larger than the window, in the server's own words */
export function checkWindow(
  request: Pick<ParsedRequest, "api" | "maxOutputTokens">,
  tokens: number,
  { window }: ServedModel,
  dialect: Dialect,
): void {
  if (tokens <= window || dialect.truncates === true) return;
  if (dialect.overflow !== undefined && request.api === dialect.api) {
    const size = { tokens, window, maxOutputTokens: request.maxOutputTokens ?? 0 };
    const { status = 400, message, code, param } = dialect.overflow(size);
    throw new Refusal(status, message, code, param);
  }
  switch (request.api) {
    case "responses":
      throw invalid(
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "context_length_exceeded",
        "input",
      );
    case "chat":
      throw invalid(
        `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`,
        "context_length_exceeded",
        "messages",
      );
    case "messages":
      throw invalid(`prompt is too long: ${tokens} tokens > ${window} maximum`);
    case "gemini":
      throw invalid(
        `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${window}).`,
      );
  }
}
