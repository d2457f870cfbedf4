/**
 * A local model server that speaks OpenAI's two wires and refuses what OpenAI refuses: the tests' scripted model is built
 * on it. Loopback only, no dependency.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { argumentsText, type AnswerWriter } from "./answer-writer.ts";
import { Biller, type Measured } from "./bill.ts";
import { createChatWriter } from "./chat-writer.ts";
import { checkAuthorization, checkRequest, checkWindow } from "./check-request.ts";
import { isObject } from "./fields.ts";
import { parseRequest } from "./parse-request.ts";
import { Refusal } from "./refusal.ts";
import { createResponsesWriter } from "./responses-writer.ts";
import { sendJson, sendReply } from "./send-reply.ts";
import type {
  ModelServer,
  ModelServerOptions,
  ParsedRequest,
  Reply,
  ServedModel,
  ServedRequest,
  WireUsage,
} from "./wire.ts";

/** Source: OpenAI refuses larger bodies with 413. */
const MAX_BODY_BYTES = 50 * 1024 * 1024;
const ROUTES: Readonly<Record<string, "responses" | "chat">> = {
  "/v1/responses": "responses",
  "/v1/chat/completions": "chat",
};

/**
 * Starts the server on 127.0.0.1. The caller closes it.
 * @throws Error (EADDRINUSE) where the port is taken
 */
export async function createModelServer(options: ModelServerOptions): Promise<ModelServer> {
  const log: ServedRequest[] = [];
  const biller = new Biller(options.countTokens);
  const server = createServer((request, response) => {
    void serve(request, response, { options, biller, log });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    log,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Serving {
  readonly options: ModelServerOptions;
  readonly biller: Biller;
  readonly log: ServedRequest[];
}

async function serve(incoming: IncomingMessage, response: ServerResponse, serving: Serving): Promise<void> {
  const path = (incoming.url ?? "").replace(/\?.*$/, "").replace(/\/$/, "");
  const api = incoming.method === "POST" ? ROUTES[path] : undefined;
  if (api === undefined) return serveOther(incoming, response, path, serving.options);

  const connection = new AbortController();
  let dropped = false;
  const drop = (): void => {
    dropped = true;
    response.destroy();
  };
  const entry: ServedRequest = { receivedAt: Date.now() };
  const number = serving.log.push(entry);
  response.on("close", () => {
    entry.endedAt = Date.now();
    connection.abort();
    if (response.writableFinished || dropped) return;
    entry.abortedAt = entry.endedAt;
    serving.options.onAbort?.(entry);
  });
  try {
    const body = await readBody(incoming);
    const { request, measured } = accept(api, body, incoming, serving);
    entry.request = request;
    const reply = await serving.options.reply(request);
    const usage = reply.error === undefined ? bill(request, measured, reply, serving.biller) : undefined;
    entry.status = reply.error?.status ?? 200;
    if (usage !== undefined) entry.usage = usage;
    const writer = writerFor(request, number);
    const finish =
      reply.finish ?? (reply.parts?.some((part) => part.type === "call") ? "tool-calls" : "stop");
    await sendReply(
      response,
      reply,
      writer,
      { finish, usage },
      { stream: request.stream, signal: connection.signal, drop },
    );
  } catch (error) {
    refuse(response, entry, error, drop);
  }
}

function accept(
  api: "responses" | "chat",
  body: Buffer,
  incoming: IncomingMessage,
  { options, biller }: Serving,
): { request: ParsedRequest; measured: Measured } {
  checkAuthorization(incoming.headers.authorization, options.apiKey);
  const parsed = parseRequest(api, body, flatHeaders(incoming));
  const model = Object.hasOwn(options.models, parsed.model) ? options.models[parsed.model] : undefined;
  if (model === undefined) throw unknownModel(api, parsed.model);
  checkRequest(parsed, model);
  const measured = biller.measure(parsed);
  checkWindow(parsed, measured.tokens, model);
  return { request: { ...parsed, inputTokens: measured.tokens }, measured };
}

function unknownModel(api: "responses" | "chat", name: string): Refusal {
  return api === "chat"
    ? new Refusal(
        404,
        `The model \`${name}\` does not exist or you do not have access to it.`,
        "model_not_found",
      )
    : new Refusal(400, `The requested model '${name}' does not exist.`, "model_not_found", "model");
}

function bill(
  request: ParsedRequest,
  measured: Measured,
  reply: Reply,
  biller: Biller,
): WireUsage | undefined {
  const cached = biller.cached(request, measured);
  if (reply.usage === null) return undefined;
  let output = 0;
  let reasoning = 0;
  for (const part of reply.parts ?? []) {
    if (part.type === "text" || part.type === "refusal") output += biller.count(part.text);
    if (part.type === "call") output += biller.count(part.name + argumentsText(part.arguments));
    if (part.type === "reasoning") reasoning += biller.count(part.text);
  }
  return { input: measured.tokens, cached, output: output + reasoning, reasoning, ...reply.usage };
}

function writerFor(request: ParsedRequest, number: number): AnswerWriter {
  const { raw, model } = request;
  if (request.api === "responses") {
    const encrypted = Array.isArray(raw["include"]) && raw["include"].includes("reasoning.encrypted_content");
    return createResponsesWriter({ model, number, encrypted });
  }
  const streamOptions = raw["stream_options"];
  const includeUsage = isObject(streamOptions) && streamOptions["include_usage"] === true;
  return createChatWriter({ model, number, encrypted: false, includeUsage });
}

function refuse(response: ServerResponse, entry: ServedRequest, error: unknown, drop: () => void): void {
  const message = error instanceof Error ? error.message : String(error);
  const http =
    error instanceof Refusal
      ? error.http
      : { status: 500, body: { error: { message, type: "server_error", param: null, code: null } } };
  entry.status = http.status;
  entry.refused = message;
  if (!response.headersSent) sendJson(response, http.status, http.body);
  else drop();
}

function serveOther(
  incoming: IncomingMessage,
  response: ServerResponse,
  path: string,
  options: ModelServerOptions,
): void {
  incoming.resume();
  if (incoming.method === "GET" && path === "/v1/models") {
    const data = Object.entries(options.models).map(([id, model]: [string, ServedModel]) => ({
      id,
      object: "model",
      created: 0,
      owned_by: "longhaul",
      context_window: model.window,
    }));
    sendJson(response, 200, { object: "list", data });
    return;
  }
  const message = `Invalid URL (${incoming.method ?? "GET"} ${path})`;
  sendJson(response, 404, { error: { message, type: "invalid_request_error", param: null, code: null } });
}

async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new Refusal(413, "Request body too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function flatHeaders(incoming: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]));
}
