/** What the real service refuses. Pure. Source: OpenAI's error texts; requirement 7.3. */
import { checkFields, type KnownFields } from "./check-fields.ts";
import { checkName, checkPairs } from "./check-pairs.ts";
import { checkParameters } from "./check-parameters.ts";
import { isOurEncryption } from "./encrypted-reasoning.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { isObject } from "./fields.ts";
import { checkGemini } from "./gemini/check-gemini.ts";
import { checkMessages } from "./messages/check-messages.ts";
import { invalid, invalidValue, Refusal } from "./refusal.ts";
import { schemaProblem } from "./schema-problem.ts";
import type { ServedModel, UncountedRequest, WireItem } from "./wire.ts";

/** OpenAI accepts nothing beyond its schema. */
const OPENAI_ALONE: KnownFields = { parameters: [], fields: [], needsDetail: true };

/**
 * @param dialect what this server accepts or refuses beyond its wire
 * @throws Refusal for a request that the real service would refuse
 */
export function checkRequest(request: UncountedRequest, model: ServedModel, dialect: Dialect): void {
  switch (request.api) {
    case "responses":
    case "chat":
      checkOpenAi(request.api, request, dialect.known ?? OPENAI_ALONE);
      if (dialect.byModel === true) checkParameters(request, model);
      break;
    case "messages":
      checkMessages(request, model);
      break;
    case "gemini":
      checkGemini(request, model);
  }
  if (request.api === dialect.api) dialect.check?.(request, model);
  checkMedia(request.items, model);
}

function checkOpenAi(api: "responses" | "chat", request: UncountedRequest, known: KnownFields): void {
  checkFields(api, request.raw, known);
  checkTools(request);
  checkPairs(api, request.items);
  if (api === "responses") checkResponsesItems(request);
}

function checkTools(request: UncountedRequest): void {
  const prefix = (index: number) => `tools[${index}]${request.api === "chat" ? ".function" : ""}`;
  const seen = new Set<string>();
  request.tools.forEach((tool, index) => {
    checkName(tool.name, `${prefix(index)}.name`);
    if (seen.has(tool.name))
      throw invalidValue(`Invalid '${prefix(index)}.name': '${tool.name}' is not unique.`, prefix(index));
    seen.add(tool.name);
    const problem =
      rootProblem(tool.schema) ??
      schemaProblem(tool.schema, true) ??
      (tool.strict === true ? strictProblem(tool.schema, []) : undefined);
    if (problem !== undefined)
      throw invalid(
        `Invalid schema for function '${tool.name}': ${problem}`,
        "invalid_function_parameters",
        `${prefix(index)}.parameters`,
      );
  });
}

/** What OpenAI wants of the whole. */
function rootProblem(schema: unknown): string | undefined {
  if (!isObject(schema)) return undefined;
  if (schema["type"] !== "object")
    return `schema must be a JSON Schema of 'type: "object"', got 'type: "${typeof schema["type"] === "string" ? schema["type"] : "None"}"'.`;
  return ["oneOf", "anyOf", "allOf", "enum", "not"].some((keyword) => schema[keyword] !== undefined)
    ? "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    : undefined;
}

/** A strict schema names every property as required and allows no others. */
function strictProblem(schema: unknown, context: readonly string[]): string | undefined {
  if (!isObject(schema)) return undefined;
  const at = `In context=(${context.map((key) => `'${key}'`).join(", ")})`;
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  if (schema["type"] === "object" && schema["additionalProperties"] !== false)
    return `${at}, 'additionalProperties' is required to be supplied and to be false.`;
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const missing = Object.keys(properties).find((name) => !required.includes(name));
  if (missing !== undefined)
    return `${at}, 'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`;
  for (const [name, property] of Object.entries(properties)) {
    const problem = strictProblem(property, [...context, "properties", name]);
    if (problem !== undefined) return problem;
  }
  return schema["items"] === undefined ? undefined : strictProblem(schema["items"], [...context, "items"]);
}

function checkResponsesItems(request: UncountedRequest): void {
  if (request.raw["store"] !== false) return;
  const itemNotFound = (id: string) =>
    new Refusal(
      404,
      `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`,
      null,
      "input",
    );
  request.items.forEach((item, index) => {
    if (item.type === "reference") throw itemNotFound(item.id);
    if (item.type !== "reasoning") return;
    if (item.encrypted === undefined) throw itemNotFound(item.id);
    if (!isOurEncryption(item.id, item.encrypted))
      throw invalid(
        `The encrypted content for item ${item.id} could not be verified.`,
        "invalid_encrypted_content",
        "input",
      );
    const next = request.items.slice(index + 1).find((later) => later.type !== "reasoning");
    const follows = next?.type === "call" || (next?.type === "message" && next.role === "assistant");
    if (!follows)
      throw invalid(
        `Item '${item.id}' of type 'reasoning' was provided without its required following item.`,
        null,
        "input",
      );
  });
}

function checkMedia(items: readonly WireItem[], model: ServedModel): void {
  const takes = model.input ?? ["text"];
  for (const item of items) {
    if (item.type !== "message" && item.type !== "result") continue;
    for (const part of item.parts) {
      if (part.type === "image" && !takes.includes("image"))
        throw invalidValue("Invalid content type. image_url is only supported by certain models.", "input");
      if (part.type === "file" && !takes.includes("pdf"))
        throw invalidValue("Invalid content type. This model does not support file content types.", "input");
    }
  }
}
