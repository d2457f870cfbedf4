/** Refuses unknown fields and values of a wire. Pure. */
import { isObject, type Json } from "./fields.ts";
import {
  ID_PREFIXES,
  IMAGE_DETAILS,
  INCLUDES,
  ITEM_FIELDS,
  MAX_CACHE_KEY_CHARS,
  OBJECT_FIELDS,
  PARAMETERS,
  PART_FIELDS,
  TOOL_FIELDS,
  VALUES,
} from "./openai-facts.ts";
import { Refusal } from "./refusal.ts";

type Api = "responses" | "chat";

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
  refuseUnknown(raw, PARAMETERS[api], known.parameters, "");
  for (const [name, fields] of Object.entries(OBJECT_FIELDS[api])) {
    const value = raw[name];
    if (isObject(value)) refuseUnknown(value, fields, known.parameters, `${name}.`);
  }
  const list = api === "responses" ? "input" : "messages";
  each(raw[list], (item, index) => checkItem(api, item, `${list}[${index}]`, known));
  each(raw["tools"], (tool, index) => {
    const inner = api === "chat" ? tool["function"] : tool;
    const path = `tools[${index}].${api === "chat" ? "function." : ""}`;
    if (api === "chat") refuseUnknown(tool, ["type", "function"], known.fields, `tools[${index}].`);
    if (isObject(inner)) refuseUnknown(inner, TOOL_FIELDS[api], known.fields, path);
  });
  if (known.parameters !== "any") checkValues(api, raw);
}

function checkValues(api: Api, raw: Json): void {
  for (const [path, values] of Object.entries(VALUES[api])) checkValue(raw, path, values);
  checkInclude(raw["include"]);
  const key = raw["prompt_cache_key"];
  if (typeof key === "string" && key.length > MAX_CACHE_KEY_CHARS) {
    throw new Refusal(
      400,
      `Invalid 'prompt_cache_key': string too long. Expected a string with maximum length ${MAX_CACHE_KEY_CHARS}, but got a string with length ${key.length} instead.`,
      "string_above_max_length",
      "prompt_cache_key",
    );
  }
}

function checkItem(api: Api, item: Json, path: string, known: KnownFields): void {
  const kind = api === "responses" ? (item["type"] ?? "message") : item["role"];
  const fields = typeof kind === "string" ? ITEM_FIELDS[api][kind] : undefined;
  // The parser refuses unknown types.
  if (typeof kind !== "string" || fields === undefined) return;
  refuseUnknown(item, fields, known.fields, `${path}.`);
  if (api === "responses" && known.fields !== "any") checkItemId(item["id"], kind, path);
  const content = kind === "function_call_output" ? item["output"] : item["content"];
  each(content, (part, index) => checkPart(api, part, `${path}.content[${index}]`, { item, kind, known }));
  each(item["tool_calls"], (call, index) => {
    const at = `${path}.tool_calls[${index}].`;
    refuseUnknown(call, ["id", "type", "function"], known.fields, at);
    if (isObject(call["function"]))
      refuseUnknown(call["function"], ["name", "arguments"], known.fields, `${at}function.`);
  });
}

function checkItemId(id: unknown, kind: string, path: string): void {
  const prefix = ID_PREFIXES[kind];
  if (typeof id !== "string" || prefix === undefined || id.startsWith(prefix)) return;
  throw new Refusal(
    400,
    `Invalid '${path}.id': '${id}'. Expected an ID that begins with '${prefix}'.`,
    "invalid_value",
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
  const fields = PART_FIELDS[type];
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
  if (typeof detail === "string" && !IMAGE_DETAILS[api].includes(detail))
    throw notOneOf(detail, IMAGE_DETAILS[api], `${path}.detail`);
  if (detail === undefined && known.needsDetail === true && kind === "message") {
    throw new Refusal(
      400,
      `Missing required parameter: '${path}.detail'.`,
      "missing_required_parameter",
      `${path}.detail`,
    );
  }
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
  include.forEach((one: unknown, index) => {
    if (typeof one !== "string" || !INCLUDES.includes(one))
      throw notOneOf(one, INCLUDES, `include[${index}]`);
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
  throw new Refusal(400, `Unknown parameter: '${path}${unknown}'.`, "unknown_parameter", `${path}${unknown}`);
}

function notOneOf(found: unknown, values: readonly string[], path: string): Refusal {
  const quoted = values.map((value) => `'${value}'`);
  const list =
    quoted.length < 2 ? quoted.join("") : `${quoted.slice(0, -1).join(", ")}, and ${quoted.at(-1)}`;
  return new Refusal(
    400,
    `Invalid value: '${typeof found === "string" ? found : JSON.stringify(found)}'. Supported values are: ${list}.`,
    "invalid_value",
    path,
  );
}

function each(list: unknown, check: (entry: Json, index: number) => void): void {
  if (!Array.isArray(list)) return;
  list.forEach((entry: unknown, index) => {
    if (isObject(entry)) check(entry, index);
  });
}
