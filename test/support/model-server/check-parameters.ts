/** Parameters that OpenAI accepts only with others, or not with every model. Pure. Source: its refusals' texts. */
import { isObject } from "./fields.ts";
import { invalid, invalidValue } from "./refusal.ts";
import type { ServedModel, UncountedRequest as Request } from "./wire.ts";

/** @throws Refusal */
export function checkParameters(request: Request, model: ServedModel): void {
  checkOutputLimit(request, model);
  checkToolChoice(request);
  checkSampling(request, model);
  checkReasoning(request, model);
  const { raw } = request;
  if (raw["stream_options"] !== undefined && raw["stream_options"] !== null && !request.stream) {
    throw invalid(
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      null,
      "stream_options",
    );
  }
}

function checkOutputLimit({ raw, api, maxOutputTokens: limit }: Request, model: ServedModel): void {
  const name = api === "responses" ? "max_output_tokens" : "max_completion_tokens";
  if (limit !== undefined && model.maxOutput !== undefined && limit > model.maxOutput) {
    throw invalidValue(
      `${name} is too large: ${limit}. This model supports at most ${model.maxOutput} completion tokens, whereas you provided ${limit}.`,
      name,
    );
  }
  if (limit !== undefined && api === "responses" && limit < 16) {
    throw invalid(
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${limit} instead.`,
      "integer_below_min_value",
      name,
    );
  }
  if (api !== "chat" || raw["max_tokens"] === undefined) return;
  if (model.reasoning === true) {
    throw invalid(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      "unsupported_parameter",
      "max_tokens",
    );
  }
  if (raw["max_completion_tokens"] !== undefined) {
    throw invalid(
      "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
      "invalid_parameter_combination",
      "max_tokens",
    );
  }
}

function checkToolChoice({ raw, api, tools }: Request): void {
  if (api === "chat" && tools.length === 0) {
    for (const name of ["parallel_tool_calls", "tool_choice"]) {
      if (raw[name] === undefined || raw[name] === "none") continue;
      throw invalid(
        `Invalid value for '${name}': '${name}' is only allowed when 'tools' are specified.`,
        null,
        name,
      );
    }
  }
  const choice = raw["tool_choice"];
  if (!isObject(choice) || choice["type"] !== "function") return;
  const chosen = api === "chat" && isObject(choice["function"]) ? choice["function"]["name"] : choice["name"];
  if (tools.some((tool) => tool.name === chosen)) return;
  throw invalid("Tool choice 'function' not found in 'tools' parameter.", null, "tool_choice");
}

function checkSampling({ raw, api }: Request, model: ServedModel): void {
  if (model.reasoning !== true) return;
  for (const name of ["temperature", "top_p"]) {
    const value = raw[name];
    if (value === undefined || value === null) continue;
    if (api === "responses")
      throw invalid(`Unsupported parameter: '${name}' is not supported with this model.`, null, name);
    if (value !== 1) {
      throw invalid(
        `Unsupported value: '${name}' does not support ${JSON.stringify(value)} with this model. Only the default (1) value is supported.`,
        "unsupported_value",
        name,
      );
    }
  }
}

function checkReasoning({ raw, api }: Request, model: ServedModel): void {
  if (model.reasoning === true) return checkSummary(raw, model);
  const include = raw["include"];
  if (Array.isArray(include) && include.includes("reasoning.encrypted_content"))
    throw invalid("Encrypted content is not supported with this model.", null, "include");
  const reasoning = raw["reasoning"];
  const parameter = isObject(reasoning)
    ? Object.keys(reasoning).find((name) => reasoning[name] !== undefined && reasoning[name] !== null)
    : undefined;
  if (api === "responses" && parameter !== undefined) {
    throw invalid(
      `Unsupported parameter: 'reasoning.${parameter}' is not supported with this model.`,
      "unsupported_parameter",
      `reasoning.${parameter}`,
    );
  }
  if (api === "chat" && raw["reasoning_effort"] !== undefined)
    throw invalid("Unrecognized request argument supplied: reasoning_effort");
}

/** Source: OpenAI's answer to unverified organisations (continuedev/continue#12031, OpenHands/software-agent-sdk#987). */
function checkSummary(raw: Request["raw"], model: ServedModel): void {
  const reasoning = raw["reasoning"];
  if (model.summaries !== false || !isObject(reasoning) || typeof reasoning["summary"] !== "string") return;
  throw invalid(
    "Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization. If you just verified, it can take up to 15 minutes for access to propagate.",
    "unsupported_value",
    "reasoning.summary",
  );
}
