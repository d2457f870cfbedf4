/**
 * A local model server that speaks four wires, plays the dialects of common servers, and refuses what the real
 * ones refuse. The tests' scripted model is built on it. Loopback only, no dependency.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { argumentsText } from "./answer-writer.ts";
import { Biller, type Measured } from "./bill.ts";
import { checkKey, checkWindow, unknownModel } from "./check-access.ts";
import { checkRequest } from "./check-request.ts";
import { createWriter } from "./create-writer.ts";
import type { Dialect } from "./dialects/dialect.ts";
import { DIALECTS, OFFICIAL } from "./dialects/dialects.ts";
import { errorBody } from "./error-body.ts";
import { parseRequest } from "./parse-request.ts";
import { Refusal, type Fault } from "./refusal.ts";
import { pathOf, routeOf, type Route } from "./routes.ts";
import { sendJson, sendReply } from "./send-reply.ts";
import type {
  HttpError,
  ModelServer,
  ModelServerOptions,
  ParsedRequest,
  Reply,
  ServedModel,
  ServedRequest,
  WireApi,
  WireUsage,
} from "./wire.ts";

/** Source: OpenAI refuses larger bodies with 413. */
const MAX_BODY_BYTES = 50 * 1024 * 1024;

/**
 * Starts the server on 127.0.0.1. The caller closes it.
 * @throws Error (EADDRINUSE) if the port is taken
 */
export async function createModelServer(options: ModelServerOptions): Promise<ModelServer> {
  const dialect = options.dialect === undefined ? OFFICIAL : DIALECTS[options.dialect];
  const log: ServedRequest[] = [];
  const biller = new Biller(options.countTokens);
  const server = createServer((request, response) => {
    void serve(request, response, { options, dialect, biller, log });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${dialect.basePath ?? "/v1"}`,
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
  readonly dialect: Dialect;
  readonly biller: Biller;
  readonly log: ServedRequest[];
}

async function serve(incoming: IncomingMessage, response: ServerResponse, serving: Serving): Promise<void> {
  const { options, dialect } = serving;
  const route = routeOf(incoming, dialect);
  if (route === undefined) return serveOther(incoming, response, options);

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
    options.onAbort?.(entry);
  });
  try {
    const body = await readBody(incoming);
    const { request, measured, model } = accept(route, body, incoming, serving);
    entry.request = request;
    const reply = await options.reply(request);
    const error = reply.error && errorOf(reply.error, request.api, dialect);
    const usage = error === undefined ? bill(request, measured, reply, serving.biller) : undefined;
    entry.status = error?.status ?? 200;
    if (usage !== undefined) entry.usage = usage;
    const finish =
      reply.finish ?? (reply.parts?.some((part) => part.type === "call") ? "tool-calls" : "stop");
    await sendReply(
      response,
      { ...reply, ...(error === undefined ? {} : { error }) },
      createWriter(request, { number, dialect, model, usage }),
      { finish, usage },
      { stream: request.stream, signal: connection.signal, drop },
    );
  } catch (error) {
    const fault = faultOf(error);
    entry.status = fault.status;
    entry.refused = fault.message;
    if (response.headersSent) drop();
    else sendJson(response, fault.status, bodyOf(fault, route.api, dialect));
  }
}

function accept(
  route: Route,
  body: Buffer,
  incoming: IncomingMessage,
  { options, dialect, biller }: Serving,
): { request: ParsedRequest; measured: Measured; model: ServedModel } {
  checkKey(route.api, incoming.headers, dialect, options.apiKey);
  const parsed = {
    ...parseRequest(route, body, flatHeaders(incoming)),
    ...(route.stream ? { stream: true } : {}),
  };
  const model = Object.hasOwn(options.models, parsed.model) ? options.models[parsed.model] : undefined;
  if (model === undefined) throw unknownModel(route.api, parsed.model);
  checkRequest(parsed, model, dialect);
  const measured = biller.measure(parsed);
  checkWindow(parsed, measured.tokens, model, dialect);
  const tokens = dialect.truncates === true ? Math.min(measured.tokens, model.window) : measured.tokens;
  return { request: { ...parsed, inputTokens: tokens }, measured: { ...measured, tokens }, model };
}

function bodyOf(fault: Fault, api: WireApi, dialect: Dialect): unknown {
  const bodyInDialect = api === dialect.api ? dialect.errorBody : undefined;
  return bodyInDialect === undefined ? errorBody(api, fault) : bodyInDialect(fault);
}

/** A scripted error in the server's own form. */
function errorOf(error: HttpError, api: WireApi, dialect: Dialect): HttpError {
  const { rateLimitSeconds: seconds } = error;
  if (seconds !== undefined) {
    const rateLimitInDialect = api === dialect.api ? dialect.rateLimit?.(seconds) : undefined;
    const message = "Rate limit reached for requests.";
    const fault = { status: 429, message, code: null, param: null, retryAfterSeconds: seconds };
    const usual = { headers: { "retry-after": String(seconds) }, body: bodyOf(fault, api, dialect) };
    return { status: 429, ...(rateLimitInDialect ?? usual) };
  }
  if (error.body !== undefined || error.message === undefined) return error;
  const { status, message, code = null } = error;
  return { ...error, body: bodyOf({ status, message, code, param: null }, api, dialect) };
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

function faultOf(error: unknown): Fault {
  if (error instanceof Refusal) return error;
  const message = error instanceof Error ? error.message : String(error);
  return { status: 500, message, code: null, param: null };
}

function serveOther(incoming: IncomingMessage, response: ServerResponse, options: ModelServerOptions): void {
  incoming.resume();
  const path = pathOf(incoming);
  if (incoming.method === "GET" && path.endsWith("/models")) {
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
  const document = incoming.method === "GET" ? options.documents?.(path) : undefined;
  if (document !== undefined) {
    sendJson(response, 200, document);
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
