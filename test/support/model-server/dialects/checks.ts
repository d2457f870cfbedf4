/** Checks of single servers, from which dialects are composed. Pure. */
import { isOurEncryption } from "../encrypted-reasoning.ts";
import { isObject, type Json } from "../fields.ts";
import { hasKey, moonshotProblem } from "../moonshot-problem.ts";
import { invalid, Refusal } from "../refusal.ts";
import type { UncountedRequest as Request } from "../wire.ts";
type Check = (request: Request) => void;

function messagesOf({ raw }: Request): readonly Json[] {
  return Array.isArray(raw["messages"]) ? raw["messages"].filter(isObject) : [];
}

function callsOf(message: Json): readonly Json[] {
  return Array.isArray(message["tool_calls"]) ? message["tool_calls"].filter(isObject) : [];
}

/** The last message must not be the assistant's. */
export function noFinalAssistant(message: string, status = 400): Check {
  return (request) => {
    if (messagesOf(request).at(-1)?.["role"] === "assistant") throw new Refusal(status, message);
  };
}

/** Accepts only the four original roles. */
export function noDeveloper(request: Request): void {
  const index = messagesOf(request).findIndex((message) => message["role"] === "developer");
  if (index === -1) return;
  throw invalid(
    `Failed to deserialize the JSON body into the target type: messages[${index}].role: unknown variant \`developer\`, expected one of \`system\`, \`user\`, \`assistant\`, \`tool\``,
    "invalid_request_error",
  );
}

/** Its validator accepts only `max_tokens`. */
export function oldLimitAlone({ raw }: Request): void {
  if (raw["max_completion_tokens"] === undefined) return;
  throw new Refusal(422, "body.max_completion_tokens: Extra inputs are not permitted", "extra_forbidden");
}

/** Runs all checks in order. */
export function all(...checks: readonly Check[]): Check {
  return (request) => {
    for (const check of checks) check(request);
  };
}

/** A thinking model requires its thoughts with each of its calls. `empty`: accepts an empty text. */
export function passedBackReasoning(rule: {
  readonly empty: boolean;
  readonly message: (index: number) => string;
}): Check {
  return (request) => {
    messagesOf(request).forEach((message, index) => {
      if (message["role"] !== "assistant" || callsOf(message).length === 0) return;
      const thoughts = message["reasoning_content"];
      if (typeof thoughts === "string" && (rule.empty || thoughts !== "")) return;
      throw invalid(rule.message(index), "invalid_request_error");
    });
  };
}

export function nineCharIds(request: Request): void {
  for (const item of request.items) {
    if (item.type !== "call" && item.type !== "result") continue;
    if (/^[a-zA-Z0-9]{9}$/.test(item.callId)) continue;
    throw invalid(`Tool call id was ${item.callId} but must be a-z, A-Z, 0-9, with a length of 9.`, "3280");
  }
}

export function mistralOrder(request: Request): void {
  const messages = messagesOf(request);
  messages.forEach((message, index) => {
    const before = messages[index - 1]?.["role"];
    if (message["role"] === "user" && before === "tool")
      throw invalid("Unexpected role 'user' after role 'tool'", "3230");
  });
  const last = messages.at(-1)?.["role"];
  if (last === "user" || last === "tool") return;
  throw invalid(
    `Expected last role User or Tool (or Assistant with prefix True) for serving but got ${String(last)}`,
    "3230",
  );
}

/** Gemini 3 through the compatible endpoint: signatures in the current turn, on the first call of each message. */
export function signedCalls(request: Request): void {
  const messages = messagesOf(request);
  const begins = messages.findLastIndex((message) => message["role"] === "user");
  messages.forEach((message, index) => {
    const [first] = callsOf(message);
    if (index < begins || first === undefined) return;
    const extra = first["extra_content"];
    const google = isObject(extra) ? extra["google"] : undefined;
    const signature = isObject(google) ? google["thought_signature"] : undefined;
    const called = first["function"];
    const name = isObject(called) ? String(called["name"]) : "";
    if (signature === "skip_thought_signature_validator") return;
    if (typeof signature === "string" && isOurEncryption(name, signature)) return;
    throw invalid(
      `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${index + 1}.`,
    );
  });
}

/** Refuses a tool's schema with one of these keywords. */
export function schemaWithout(keywords: readonly string[]): Check {
  return (request) => {
    request.tools.forEach((tool, index) => {
      const found = keywords.find((keyword) => hasKey(tool.schema, (name) => name === keyword, true));
      if (found === undefined) return;
      throw invalid(
        `Invalid JSON payload received. Unknown name "${found}" at 'tools[${index}].function_declarations[0].parameters': Cannot find field.`,
      );
    });
  };
}

/** Does not say which tool it is about. */
export function moonshotSchemas(request: Request): void {
  for (const { schema } of request.tools) {
    const problem = isObject(schema) ? moonshotProblem(schema) : undefined;
    if (problem === undefined) continue;
    throw new Refusal(
      400,
      `Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: <${problem}>`,
      "invalid_request_error",
    );
  }
}
