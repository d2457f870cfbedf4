/** Refuses unknown fields and values of a wire. Pure. */
import { isObject, type Json } from "./fields.ts";
import { invalid, invalidValue, missing, notOneOf, tooLong } from "./refusal.ts";
import { WIRE_FIELDS } from "./wire-fields.ts";

type Api = "responses" | "chat";

/** Prefixes of items' own ids. */
const ID_PREFIXES: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  function_call_output: "fc",
};
/** Source: the service's own refusal (openai/codex#2000 and others); the schema has none. */
const MAX_CACHE_KEY_CHARS = 64;

/** What a compatible server accepts in addition to the official schema. */
export interface KnownFields {
  /** Parameters; `any` ignores unknown ones. */
  readonly parameters: readonly string[] | "any";
  /** Fields of messages, parts and calls. */
  readonly fields: readonly string[] | "any";
  /** Refuses a person's image without `detail`, as the schema does. */
  readonly needsDetail?: boolean;
}

/** @throws Refusal naming the first unknown parameter, field or value */
export function checkFields(api: Api, raw: Json, known: KnownFields): void {
  refuseUnknown(raw, WIRE_FIELDS[api].parameters, known.parameters, "");
  for (const [name, fields] of Object.entries(WIRE_FIELDS[api].objects)) {
    const value = raw[name];
    if (isObject(value)) refuseUnknown(value, fields, known.parameters, `${name}.`);
  }
  const list = api === "responses" ? "input" : "messages";
  forEachObject(raw[list], (item, index) => checkItem(api, item, `${list}[${index}]`, known));
  forEachObject(raw["tools"], (tool, index) => {
    const inner = api === "chat" ? tool["function"] : tool;
    const path = `tools[${index}].${api === "chat" ? "function." : ""}`;
    if (api === "chat") refuseUnknown(tool, ["type", "function"], known.fields, `tools[${index}].`);
    if (isObject(inner)) refuseUnknown(inner, WIRE_FIELDS[api].tool, known.fields, path);
  });
  if (known.parameters !== "any") checkValues(api, raw);
}

function checkValues(api: Api, raw: Json): void {
  for (const [path, values] of Object.entries(WIRE_FIELDS[api].values)) checkValue(raw, path, values);
  checkInclude(raw["include"]);
  const key = raw["prompt_cache_key"];
  if (typeof key === "string" && key.length > MAX_CACHE_KEY_CHARS)
    throw tooLong("prompt_cache_key", MAX_CACHE_KEY_CHARS, key.length);
}

function checkItem(api: Api, item: Json, path: string, known: KnownFields): void {
  const kind = api === "responses" ? (item["type"] ?? "message") : item["role"];
  const fields = typeof kind === "string" ? WIRE_FIELDS[api].items[kind] : undefined;
  // The parser refuses unknown types.
  if (typeof kind !== "string" || fields === undefined) return;
  refuseUnknown(item, fields, known.fields, `${path}.`);
  if (api === "responses" && known.fields !== "any") checkItemId(item["id"], kind, path);
  const content = kind === "function_call_output" ? item["output"] : item["content"];
  forEachObject(content, (part, index) =>
    checkPart(api, part, `${path}.content[${index}]`, { item, kind, known }),
  );
  forEachObject(item["tool_calls"], (call, index) => {
    const at = `${path}.tool_calls[${index}].`;
    refuseUnknown(call, ["id", "type", "function"], known.fields, at);
    if (isObject(call["function"]))
      refuseUnknown(call["function"], ["name", "arguments"], known.fields, `${at}function.`);
  });
}

function checkItemId(id: unknown, kind: string, path: string): void {
  const prefix = ID_PREFIXES[kind];
  if (typeof id !== "string" || prefix === undefined || id.startsWith(prefix)) return;
  throw invalidValue(
    `Invalid '${path}.id': '${id}'. Expected an ID that begins with '${prefix}'.`,
    `${path}.id`,
  );
}

interface PartPlace {
  readonly item: Json;
  readonly kind: string;
  readonly known: KnownFields;
}

function checkPart(api: Api, part: Json, path: string, { item, kind, known }: PartPlace): void {
  const type = String(part["type"]);
  const fields = WIRE_FIELDS.parts[type];
  if (fields === undefined) return;
  refuseUnknown(part, fields, known.fields, `${path}.`);
  if (api === "responses" && kind === "message" && known.fields !== "any") {
    const allowed =
      item["role"] === "assistant" ? ["output_text", "refusal"] : ["input_text", "input_image", "input_file"];
    if (!allowed.includes(type)) throw notOneOf(type, allowed, path);
  }
  const images: Readonly<Record<string, unknown>> = { image_url: part["image_url"], input_image: part };
  const image = images[type];
  if (!isObject(image)) return;
  if (type === "image_url") refuseUnknown(image, ["url", "detail"], known.fields, `${path}.image_url.`);
  const detail = image["detail"];
  if (typeof detail === "string" && !WIRE_FIELDS[api].imageDetails.includes(detail))
    throw notOneOf(detail, WIRE_FIELDS[api].imageDetails, `${path}.detail`);
  if (detail === undefined && known.needsDetail === true && kind === "message")
    throw missing(`${path}.detail`);
}

function checkValue(raw: Json, path: string, values: readonly string[]): void {
  const [outer = "", inner] = path.split(".");
  const whole = raw[outer];
  const part = isObject(whole) && inner !== undefined ? whole[inner] : undefined;
  const found = inner === undefined ? whole : part;
  if (found === undefined || found === null || isObject(found)) return;
  if (typeof found !== "string" || !values.includes(found)) throw notOneOf(found, values, path);
}

function checkInclude(include: unknown): void {
  if (!Array.isArray(include)) return;
  const { includes } = WIRE_FIELDS.responses;
  include.forEach((field: unknown, index) => {
    if (typeof field !== "string" || !includes.includes(field))
      throw notOneOf(field, includes, `include[${index}]`);
  });
}

function refuseUnknown(
  value: Json,
  official: readonly string[],
  more: readonly string[] | "any",
  path: string,
): void {
  if (more === "any") return;
  const unknown = Object.keys(value).find((name) => !official.includes(name) && !more.includes(name));
  if (unknown === undefined) return;
  throw invalid(`Unknown parameter: '${path}${unknown}'.`, "unknown_parameter", `${path}${unknown}`);
}

function forEachObject(list: unknown, check: (entry: Json, index: number) => void): void {
  if (!Array.isArray(list)) return;
  list.forEach((entry: unknown, index) => {
    if (isObject(entry)) check(entry, index);
  });
}
