/** Brings a server's answers into the form that the protocol's client accepts: first each message, then the result in it. */
import {
  PROTOCOL_VERSION_META_KEY,
  type JSONRPCMessage,
  type RequestId,
  type Transport,
} from "@modelcontextprotocol/client";
import { bodyText } from "../process/bounded-body.ts";
import { isJsonObject, toObject, type JsonObject } from "../text/json.ts";
import { PLAIN, readCallResult, readToolList } from "./results.ts";
import { wholeTask } from "./tasks.ts";

interface AskedRequest {
  readonly method: string;
  /** The newest revision demands a kind of each result. */
  readonly isModern: boolean;
}

/** The tools of a list's pages so far, by the transport that they came over. */
const pages = new WeakMap<Transport, unknown[]>();

/** The tools on the pages that came, also if a later page did not. */
export const toolsThatCame = (transport: Transport | undefined): readonly unknown[] =>
  (transport && pages.get(transport)) ?? [];

/** The transport, with answers repaired that the client would refuse. */
export function admitAnswers<T extends Transport>(transport: T): T {
  const open = new Map<RequestId, AskedRequest>();
  let listener: Transport["onmessage"];
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    for (const sent of Array.isArray(message) ? message : [message]) note(sent as JSONRPCMessage);
    return send(message, options);
  };
  function note(sent: JSONRPCMessage): void {
    if (!("method" in sent) || !("id" in sent) || sent.id === undefined) return;
    const { method, params } = sent as { readonly method: string; readonly params?: JsonObject };
    open.set(sent.id, { method, isModern: PROTOCOL_VERSION_META_KEY in toObject(params?.["_meta"]) });
    if (method === "tools/list" && params?.["cursor"] === undefined) pages.set(transport, []);
  }
  function admitted<M extends JSONRPCMessage>(message: M): M {
    if (!("result" in message) || message.id === undefined) return message;
    const request = open.get(message.id);
    open.delete(message.id);
    const result = readAnswer(request, message.result as JsonObject);
    if (request?.method === "tools/list") pages.get(transport)?.push(...(result["tools"] as unknown[]));
    return { ...message, result };
  }
  Object.defineProperty(transport, "onmessage", {
    configurable: true,
    get: (): Transport["onmessage"] => listener && ((message, extra) => listener?.(admitted(message), extra)),
    set: (newListener: Transport["onmessage"]) => {
      listener = newListener;
    },
  });
  return transport;
}

function readAnswer(request: AskedRequest | undefined, answer: JsonObject): JsonObject {
  if (answer["resultType"] === "task") return wholeTask(answer);
  if (answer["resultType"] === "input_required" || request === undefined) return answer;
  const whole =
    request.isModern && typeof answer["resultType"] !== "string" ? { resultType: "complete" } : {};
  if (request.method === "tools/list") return readToolList({ ...answer, ...whole });
  if (request.method === "tools/call") return { ...readCallResult(answer), ...whole };
  return answer;
}

/**
 * A message as JSON-RPC has it; undefined for what is none. Some servers leave out the version, send `error: null` beside a result,
 * or a result that is no object.
 */
export function readServerMessage(raw: unknown): JSONRPCMessage | undefined {
  if (!isJsonObject(raw)) return undefined;
  if (isWellFormed(raw)) return raw as JSONRPCMessage;
  const { id, method, params, result, error } = raw;
  const head = { jsonrpc: "2.0" as const };
  if (typeof method === "string") {
    const { params: _, ...rest } = raw;
    return { ...rest, ...head, ...(isJsonObject(params) ? { params } : {}) } as JSONRPCMessage;
  }
  const isNamed = typeof id === "string" || typeof id === "number";
  if (error !== undefined && error !== null)
    return { ...head, ...(isNamed ? { id } : {}), error: errorOf(error) };
  if (!("result" in raw) || !isNamed) return undefined;
  return { ...head, id, result: isJsonObject(result) ? result : { [PLAIN]: result } };
}

function isWellFormed({ jsonrpc, method, params, result, error }: JsonObject): boolean {
  if (jsonrpc !== "2.0") return false;
  if (method !== undefined)
    return typeof method === "string" && (params === undefined || isJsonObject(params));
  return error === undefined
    ? isJsonObject(result)
    : result === undefined &&
        Number.isInteger(toObject(error)["code"]) &&
        typeof toObject(error)["message"] === "string";
}

/** Source: JSON-RPC, "internal error". */
const INTERNAL_ERROR = -32_603;

function errorOf(error: unknown): {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
} {
  const { code, message = error, data } = toObject(error);
  return {
    code: typeof code === "number" && Number.isInteger(code) ? code : INTERNAL_ERROR,
    message: typeof message === "string" ? message : JSON.stringify(message),
    data,
  };
}

/** A message on a line of its own; undefined for other lines, which programs print too. */
export function messageOnLine(line: string): JSONRPCMessage | undefined {
  if (!line.trimStart().startsWith("{")) return undefined;
  try {
    return readServerMessage(JSON.parse(line));
  } catch {
    return undefined;
  }
}

/** The same fetch, whose answers carry messages as JSON-RPC has them: the client's own transport drops others without a word. */
export function readingMessages(send: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = await send(input, init);
    const type = response.headers.get("content-type") ?? "";
    if (!response.ok || response.body === null) return response;
    if (type.includes("application/json")) return remade(response, repaired(await bodyText(response)));
    if (!type.includes("text/event-stream")) return response;
    const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(eventLines());
    return remade(response, events.pipeThrough(new TextEncoderStream()));
  };
}

function remade(response: Response, body: string | ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers, url } = response;
  const made = new Response(body, { status, statusText, headers });
  // A made response has no address of its own, which the client reads.
  Object.defineProperty(made, "url", { value: url });
  return made;
}

/** The same JSON, unless it has a message that needs repair. */
function repaired(json: string): string {
  try {
    const raw: unknown = JSON.parse(json);
    const messages = Array.isArray(raw) ? (raw as unknown[]) : [raw];
    const read = messages.map((message) => readServerMessage(message) ?? message);
    if (read.every((message, index) => message === messages[index])) return json;
    return JSON.stringify(Array.isArray(raw) ? read : read[0]);
  } catch {
    return json;
  }
}

/** Server-sent events, each with its data on one line, as JSON has no line breaks. */
function eventLines(): TransformStream<string, string> {
  // Joined once: a line may be long.
  let rest: string[] = [];
  const line = (text: string) => {
    const [, mark = "", data = ""] = /^(data: ?)(.*)$/s.exec(text) ?? [];
    return mark === "" ? text : mark + repaired(data);
  };
  return new TransformStream({
    transform(chunk, controller) {
      const [first = "", ...others] = chunk.split("\n");
      rest.push(first);
      const last = others.pop();
      if (last === undefined) return;
      controller.enqueue([rest.join(""), ...others].map((one) => `${line(one)}\n`).join(""));
      rest = [last];
    },
    flush: (controller) => controller.enqueue(line(rest.join(""))),
  });
}
