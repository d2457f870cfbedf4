/** Errors as each wire has them. Pure. */
import type { Fault } from "./refusal.ts";
import type { WireApi } from "./wire.ts";

/** The body of an error's answer. */
export function errorBody(api: WireApi, fault: Fault): unknown {
  if (api === "messages") return messagesError(fault);
  if (api === "gemini") return geminiError(fault);
  return openAiError(fault);
}

/** Source: OpenAI's error texts seen up to 2026-11. */
export function openAiError({ status, message, code, param }: Fault): unknown {
  return { error: { message, type: openAiType(status), param, code } };
}

function openAiType(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 429) return "requests";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

/** Source: Anthropic's reference, "Errors". */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};

export function messagesError({ status, message, code }: Fault): unknown {
  const type = code ?? ANTHROPIC_TYPES[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { type, message }, request_id: "req_011CStrictServer" };
}

/** Source: google.rpc.Code, and google.rpc.error_details for the delay. */
const GOOGLE_STATUS: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

export function geminiError({ status, message, code, retryAfterSeconds }: Fault): unknown {
  const delay =
    retryAfterSeconds === undefined
      ? {}
      : {
          details: [
            { "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [] },
            { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: `${retryAfterSeconds}s` },
          ],
        };
  return {
    error: { code: status, message, status: code ?? GOOGLE_STATUS[status] ?? "UNKNOWN", ...delay },
  };
}
