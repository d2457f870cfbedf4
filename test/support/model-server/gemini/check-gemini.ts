/** What Gemini refuses. Pure. Source: its error texts in public issues (gemini-cli, dify#29187, code_puppy#165, vercel/ai). */
import { isOurEncryption } from "../encrypted-reasoning.ts";
import { isObject, type Json } from "../fields.ts";
import { invalid } from "../refusal.ts";
import { WIRE_FIELDS } from "../wire-fields.ts";
import type { ServedModel, UncountedRequest as Request } from "../wire.ts";
import { contentsOf, partsOf } from "./parse-gemini.ts";

const FIELDS = WIRE_FIELDS.gemini;
const TOOL_NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/;
/** Documented for calls that come from another model. Source: Google's guide, "Thought signatures". */
const NO_VALIDATION = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/** @throws Refusal */
export function checkGemini(request: Request, model: ServedModel): void {
  const { raw } = request;
  known(raw, FIELDS.request, "");
  const config = raw["generationConfig"];
  if (isObject(config)) {
    known(config, FIELDS.generationConfig, "generation_config");
    if (isObject(config["thinkingConfig"]))
      known(config["thinkingConfig"], FIELDS.thinkingConfig, "generation_config.thinking_config");
  }
  const limit = request.maxOutputTokens;
  if (limit !== undefined && model.maxOutput !== undefined && limit > model.maxOutput) {
    throw invalid(
      `Unable to submit request because it has a maxOutputTokens value of ${limit} but the supported range is from 1 (inclusive) to ${model.maxOutput + 1} (exclusive). Update the value and try again.`,
    );
  }
  checkTools(raw);
  checkTurns(raw, model);
}

function known(value: Json, fields: readonly string[], path: string): void {
  const unknown = Object.keys(value).find((name) => !fields.includes(name));
  if (unknown === undefined) return;
  const at = path === "" ? "" : ` at '${path}'`;
  throw invalid(`Invalid JSON payload received. Unknown name "${unknown}"${at}: Cannot find field.`);
}

function checkTools(raw: Json): void {
  const { tools } = raw;
  if (!Array.isArray(tools)) return;
  tools.filter(isObject).forEach((tool, index) => {
    const declarations = tool["functionDeclarations"];
    if (!Array.isArray(declarations)) return;
    declarations.filter(isObject).forEach((declaration, position) => {
      const path = `tools[${index}].function_declarations[${position}]`;
      known(declaration, FIELDS.declaration, path);
      if (!TOOL_NAME.test(String(declaration["name"])))
        throw invalid(
          `* GenerateContentRequest.${path}.name: Invalid function name. Must start with a letter or an underscore.`,
        );
      if (declaration["parameters"] !== undefined)
        checkSchema(declaration["parameters"], `${path}.parameters`);
    });
  });
}

function checkSchema(schema: unknown, path: string): void {
  if (!isObject(schema))
    throw invalid(
      `Invalid value at '${path}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Schema)`,
    );
  known(schema, FIELDS.schema, path);
  if (Array.isArray(schema["type"]))
    throw invalid(`Proto field is not repeating, cannot start list at '${path}.type'.`);
  const { properties, items } = schema;
  if (isObject(properties))
    Object.values(properties).forEach((property, index) =>
      checkSchema(property, `${path}.properties[${index}].value`),
    );
  if (items !== undefined) checkSchema(items, `${path}.items`);
  else if (schema["type"] === "array")
    throw invalid(`* GenerateContentRequest.${path}.items: missing field.`);
}

function checkTurns(raw: Json, model: ServedModel): void {
  const contents = contentsOf(raw);
  contents.forEach((content, index) => {
    const path = `contents[${index}]`;
    known(content, FIELDS.content, path);
    const { role } = content;
    if (role !== "user" && role !== "model") throw invalid("Please use a valid role: user, model.");
    const parts = partsOf(content);
    if (parts.length === 0)
      throw invalid(`* GenerateContentRequest.${path}.parts: contents.parts must not be empty.`);
    parts.forEach((part, position) => {
      known(part, FIELDS.part, `${path}.parts[${position}]`);
      if (Object.keys(part).every((name) => name === "thought" || name === "thoughtSignature"))
        throw invalid(
          `* GenerateContentRequest.${path}.parts[${position}].data: required oneof field 'data' must have one initialized field`,
        );
    });
    checkPair(contents, index);
  });
  if (contents.at(-1)?.["role"] !== "user")
    throw invalid("Please ensure that single turn requests end with a user role or the role field is empty.");
  if (model.signatures === true) checkSignatures(contents);
}

const calls = (content: Json | undefined) =>
  content === undefined ? [] : partsOf(content).filter((part) => isObject(part["functionCall"]));
const responses = (content: Json | undefined) =>
  content === undefined ? [] : partsOf(content).filter((part) => isObject(part["functionResponse"]));

function checkPair(contents: readonly Json[], index: number): void {
  const content = contents[index];
  const before = contents[index - 1];
  if (content?.["role"] === "model" && calls(content).length > 0) {
    if (before?.["role"] !== "user") {
      throw invalid(
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
      );
    }
    const answered = responses(contents[index + 1]).length;
    if (answered !== calls(content).length) {
      throw invalid(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
      );
    }
  }
  const answers = responses(content);
  if (answers.length === 0) return;
  const called = calls(before).map((part) => nameOf(part["functionCall"]));
  if (called.length === 0)
    throw invalid("Please ensure that function response turn comes immediately after a function call turn.");
  for (const part of answers) {
    const name = nameOf(part["functionResponse"]);
    if (!called.includes(name))
      throw invalid(
        `Please ensure that function response name '${name}' is the name of a function call before it.`,
      );
  }
}

function nameOf(value: unknown): string {
  return isObject(value) && typeof value["name"] === "string" ? value["name"] : "";
}

/** In the current turn only: the first call of each step carries the model's signature. Source: "Thought signatures". */
function checkSignatures(contents: readonly Json[]): void {
  const begins = contents.findLastIndex(
    (content) =>
      content["role"] === "user" && partsOf(content).some((part) => !isObject(part["functionResponse"])),
  );
  contents.forEach((content, index) => {
    const [first] = calls(content);
    if (index < begins || first === undefined) return;
    const signature = first["thoughtSignature"];
    const name = nameOf(first["functionCall"]);
    if (typeof signature !== "string") {
      throw invalid(
        `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${index + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`,
      );
    }
    if (!NO_VALIDATION.includes(signature) && !isOurEncryption(name, signature))
      throw invalid("Thought signature is not valid.");
  });
}
