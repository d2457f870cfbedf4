/**
 * Answers counts of tokens in front of a model server, and passes everything else on. As strict as the real ones: it takes the
 * fields that their reference lists, and no other. Sources: platform.claude.com/docs/en/api/messages/count_tokens (the request of
 * a message without what shapes its answer), ai.google.dev/api/tokens (either `contents` or `generateContentRequest`), and
 * CountTokensRequest of Vertex AI's v1 API.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type { ReadableStream } from "node:stream/web";
import { z } from "zod";
import { listen } from "./listen.ts";
import { countTokens } from "./scripted-model.ts";
import { Biller } from "./model-server/bill.ts";
import { parseRequest } from "./model-server/parse-request.ts";
import type { WireApi } from "./model-server/wire.ts";

const list = z.array(z.unknown());
const record = z.record(z.string(), z.unknown());

const messagesCount = z.strictObject({
  model: z.string(),
  messages: list.min(1),
  system: z.union([z.string(), list]).optional(),
  tools: list.optional(),
  tool_choice: record.optional(),
  thinking: record.optional(),
  cache_control: record.optional(),
  output_config: record.optional(),
});

const content = { contents: list, systemInstruction: record.optional(), tools: list.optional() };
const geminiCount = z.union([
  z.strictObject({ contents: list }),
  z.strictObject({
    generateContentRequest: z.strictObject({
      ...content,
      model: z.string().regex(/^models\/[^/]+$/),
      toolConfig: record.optional(),
      safetySettings: list.optional(),
      generationConfig: record.optional(),
      cachedContent: z.string().optional(),
    }),
  }),
]);
const vertexCount = z.strictObject({
  ...content,
  generationConfig: record.optional(),
  model: z.string().optional(),
});

interface Count {
  readonly path: string;
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers: IncomingMessage["headers"];
}

export interface CountFront {
  readonly url: string;
  readonly counts: readonly Count[];
}

export interface CountFrontOptions {
  /** Instead of the server's own count. */
  readonly tokens?: (counted: number) => number;
  /** Instead of an answer: a status, an answer without a number, or none at all. */
  readonly instead?: number | "nonsense" | "nothing";
  /** A field, anywhere, that this server does not know. */
  readonly refuses?: string;
}

/** @param baseUrl the model server's; the front's has the same path. Closed with the test */
export async function startCountFront(baseUrl: string, options: CountFrontOptions = {}): Promise<CountFront> {
  const counts: Count[] = [];
  const target = new URL(baseUrl);
  const server = createServer((incoming, response) => {
    void answer(incoming, response).catch(() => response.destroy());
  });
  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(incoming);
    const path = (incoming.url ?? "").split("?")[0] ?? "";
    if (!/count_tokens$|:countTokens$|count-tokens:rawPredict$/.test(path))
      return passOn(incoming, body, response);
    const [status, answer] = outcomeOf(path, body, incoming.headers, options);
    counts.push({ path, status, body: JSON.parse(body.toString()), headers: incoming.headers });
    if (options.instead === "nothing") return;
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
  };
  const passOn = async (incoming: IncomingMessage, body: Buffer, response: ServerResponse) => {
    const passed = await fetch(new URL(incoming.url ?? "", target.origin), {
      method: incoming.method ?? "GET",
      headers: new Headers(
        Object.entries(incoming.headers)
          .filter(([name]) => !/^(host|connection|content-length|transfer-encoding|expect)$/.test(name))
          .map(([name, value]) => [name, String(value)]),
      ),
      body: body.length === 0 ? undefined : new Uint8Array(body),
    });
    const headers = [...passed.headers].filter(
      ([name]) => !/^(content-encoding|transfer-encoding|connection)$/.test(name),
    );
    response.writeHead(passed.status, Object.fromEntries(headers));
    if (passed.body === null) response.end();
    else Readable.fromWeb(passed.body as ReadableStream).pipe(response);
  };
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}${target.pathname}`, counts };
}

function outcomeOf(
  path: string,
  bytes: Buffer,
  headers: IncomingMessage["headers"],
  { tokens = (counted) => counted, instead, refuses }: CountFrontOptions,
): [number, unknown] {
  if (typeof instead === "number") return [instead, { error: { message: "No." } }];
  if (instead === "nonsense") return [200, { tokens: "many" }];
  const refuse = (message: string): [number, unknown] => [400, { error: { message } }];
  if (refuses !== undefined && bytes.includes(`"${refuses}":`)) return refuse(`${refuses}: unknown`);
  const body: unknown = JSON.parse(bytes.toString());
  const isMessages = /count[_-]tokens/.test(path);
  if (isMessages && !path.endsWith(":rawPredict") && !headers["anthropic-version"])
    return refuse("anthropic-version: header is required");
  if (!headers["x-api-key"] && !headers["x-goog-api-key"] && !headers.authorization)
    return [401, { error: { message: "no key" } }];
  const ofGoogle = path.includes("/publishers/google/") ? vertexCount : geminiCount;
  const parsed = (isMessages ? messagesCount : ofGoogle).safeParse(body);
  if (!parsed.success) return refuse(z.prettifyError(parsed.error));
  const counted = tokens(countOf(isMessages ? "messages" : "gemini", parsed.data));
  return [200, isMessages ? { input_tokens: counted } : { totalTokens: counted }];
}

function countOf(api: WireApi, body: object): number {
  const inner = "generateContentRequest" in body ? (body.generateContentRequest as object) : body;
  const request = parseRequest({ api, named: "counted" }, Buffer.from(JSON.stringify(inner)), {});
  return new Biller(countTokens).measure(request).tokens;
}
