/** Serves the rehearsal as a local model: as much of OpenAI's Responses API as our own client uses. Loopback only. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { estimateText } from "../../activities/text/tokens.ts";
import type { ParsedRequest, Reply, ReplyPart, WireItem } from "./rehearsal.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { z } from "zod";

/** Source: OpenAI's prompt caching guide. */
const CACHE_MINIMUM_TOKENS = 1_024;
/** Overhead of the format per message. Source: OpenAI cookbook. */
const TOKENS_PER_MESSAGE = 3;

export interface RehearsalServer {
  /** Base URL for a client: `http://127.0.0.1:<port>/v1`. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Starts the server on 127.0.0.1; port 0 is any free one. The caller closes it.
 * @throws Error (EADDRINUSE) if the port is taken
 */
export async function serveRehearsal(
  reply: (request: ParsedRequest) => Reply,
  port = 0,
): Promise<RehearsalServer> {
  const prompts = new Map<string, string>();
  const server = createServer((request, response) => {
    answer(request, response, reply, prompts).catch((error: unknown) => {
      const message = reasonOf(error);
      if (response.headersSent) response.destroy();
      else sendJson(response, 400, { error: { message, type: "invalid_request_error" } });
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** @param prompts the last prompt of each cache key */
async function answer(
  incoming: IncomingMessage,
  response: ServerResponse,
  reply: (request: ParsedRequest) => Reply,
  prompts: Map<string, string>,
): Promise<void> {
  if (incoming.method !== "POST" || incoming.url !== "/v1/responses") {
    incoming.resume();
    const message = `The rehearsal model serves only POST /v1/responses, not ${incoming.method} ${incoming.url}.`;
    return sendJson(response, 404, { error: { message, type: "invalid_request_error" } });
  }
  const { request, model, texts } = readRequest(await readText(incoming));
  const key = request.cacheKey ?? "";
  const prompt = texts.join("\n");
  const input = estimateText(prompt) + TOKENS_PER_MESSAGE * texts.length;
  const cached = Math.floor((input * commonPrefix(prompts.get(key) ?? "", prompt)) / prompt.length);
  prompts.set(key, prompt);
  const { parts, chunkChars, chunkDelayMs } = reply(request);
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
  });
  const send = (type: string, fields: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
  const id = randomUUID();
  const base = { id: `resp_${id}`, created_at: Math.floor(Date.now() / 1_000), model };
  send("response.created", { response: base });
  for (const [index, part] of parts.entries()) {
    const { added, delta, done, text } = eventsOf(part, `${id}_${index}`);
    send("response.output_item.added", { output_index: index, item: added });
    if (part.type === "reasoning")
      send("response.reasoning_summary_part.added", { item_id: added.id, summary_index: 0 });
    for (const chunk of chunksOf(text, chunkChars)) {
      if (response.destroyed) return;
      send(delta, {
        item_id: added.id,
        output_index: index,
        content_index: 0,
        summary_index: 0,
        delta: chunk,
      });
      if (chunkDelayMs > 0) await sleep(chunkDelayMs);
    }
    send("response.output_item.done", { output_index: index, item: done });
  }
  const tokensOf = (wanted: (part: ReplyPart) => boolean) =>
    parts.filter(wanted).reduce((sum, part) => sum + estimateText(textOf(part)), 0);
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached < CACHE_MINIMUM_TOKENS ? 0 : cached },
    output_tokens: tokensOf(() => true),
    output_tokens_details: { reasoning_tokens: tokensOf(({ type }) => type === "reasoning") },
  };
  send("response.completed", { response: { ...base, incomplete_details: null, usage } });
  response.end();
}

/** A part as an output item: as announced, and as completed. */
function eventsOf(part: ReplyPart, id: string) {
  const text = textOf(part);
  if (part.type === "call") {
    const item = { id: `fc_${part.callId}`, type: "function_call", call_id: part.callId, name: part.name };
    return {
      text,
      delta: "response.function_call_arguments.delta",
      added: { ...item, arguments: "" },
      done: { ...item, arguments: text, status: "completed" },
    };
  }
  if (part.type === "reasoning") {
    const item = { id: `rs_${id}`, type: "reasoning", encrypted_content: "rehearsal" };
    return {
      text,
      delta: "response.reasoning_summary_text.delta",
      added: item,
      done: { ...item, summary: [{ type: "summary_text", text }] },
    };
  }
  const item = { id: `msg_${id}`, type: "message", role: "assistant" };
  return {
    text,
    delta: "response.output_text.delta",
    added: item,
    done: { ...item, content: [{ type: "output_text", text, annotations: [] }] },
  };
}

const textOf = (part: ReplyPart) => (part.type === "call" ? JSON.stringify(part.arguments) : part.text);

/** Cuts at code points: half a surrogate pair is not valid JSON. */
function chunksOf(text: string, chars: number): string[] {
  return text.match(new RegExp(`[^]{1,${chars}}`, "gu")) ?? [];
}

function commonPrefix(left: string, right: string): number {
  let length = 0;
  while (length < left.length && left[length] === right[length]) length += 1;
  return length;
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

const parts = z
  .union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))])
  .transform((content) =>
    (typeof content === "string" ? [{ text: content }] : content).map(({ text }) =>
      text === undefined ? ({ type: "file" } as const) : ({ type: "text", text } as const),
    ),
  );

const item = z.union([
  z.object({ role: z.enum(["system", "developer", "user", "assistant"]), content: parts }),
  z.object({
    type: z.literal("function_call"),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
  }),
  z.object({ type: z.literal("function_call_output"), call_id: z.string(), output: parts }),
  z.object({ type: z.literal("reasoning"), summary: z.array(z.object({ text: z.string() })) }),
]);

const body = z.object({
  model: z.string(),
  instructions: z.string().optional(),
  input: z.array(item),
  tools: z.array(z.unknown()).default([]),
  tool_choice: z.unknown(),
  prompt_cache_key: z.string().optional(),
});

interface ReadRequest {
  readonly request: ParsedRequest;
  readonly model: string;
  /** All texts that count as usage, in the order in which a cache compares them. */
  readonly texts: readonly string[];
}

/** @throws ZodError, SyntaxError for another body */
function readRequest(text: string): ReadRequest {
  const {
    model,
    instructions = "",
    input,
    tools,
    tool_choice: choice,
    prompt_cache_key: cacheKey,
  } = body.parse(JSON.parse(text));
  const system = [instructions];
  const items: WireItem[] = [];
  const texts = [JSON.stringify(tools), instructions];
  for (const entry of input) {
    if ("role" in entry) {
      const { role, content } = entry;
      texts.push(wordsOf(content));
      if (role === "user" || role === "assistant") items.push({ type: "message", role, parts: content });
      else system.push(wordsOf(content));
    } else if (entry.type === "function_call") {
      texts.push(`${entry.name}\n${entry.arguments}`);
      items.push({ type: "call", callId: entry.call_id });
    } else if (entry.type === "function_call_output") {
      texts.push(wordsOf(entry.output));
      items.push({ type: "result", callId: entry.call_id, parts: entry.output });
    } else texts.push(...entry.summary.map((part) => part.text));
  }
  return {
    request: { system: system.join("\n"), items, tools: choice === "none" ? [] : tools, cacheKey },
    model,
    texts,
  };
}

const wordsOf = (content: z.infer<typeof parts>) =>
  content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
