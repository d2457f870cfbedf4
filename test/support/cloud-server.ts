/**
 * A cloud in front of the strict model server: it takes the addresses, headers and bodies that the clouds document, checks the
 * token of each request, and hands the request on in its maker's form.
 */
import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import type { PresetName } from "../../activities/config/presets.ts";
import { listen } from "./listen.ts";
import {
  startScriptedModel,
  type ModelScript,
  type ScriptedModelServer,
  type Turn,
} from "./scripted-model.ts";

interface Taken {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Door {
  readonly path: RegExp;
  /** @returns what is wrong, in the service's way */
  readonly wrong?: (taken: Taken) => string | undefined;
  readonly inner: (taken: Taken, model: string) => Omit<Taken, "headers">;
}

const KEY = "inner-key";
const same = (path: string) => (taken: Taken) => ({ path, body: taken.body });

/** Sources: the references linked in docs/identity.md. */
const DOORS: Readonly<Record<PresetName, Door>> = {
  "bedrock-claude": {
    path: /^\/anthropic\/v1\/messages$/,
    wrong: ({ headers, body }) => {
      if (headers["anthropic-version"] === undefined) return "anthropic-version: header is required";
      if (typeof body["model"] !== "string") return "model: field required";
      return undefined;
    },
    inner: same("/v1/messages"),
  },
  "bedrock-open": { path: /^\/v1\/chat\/completions$/, inner: same("/v1/chat/completions") },
  "vertex-gemini": {
    path: /^\/v1\/projects\/p1\/locations\/europe-west4\/publishers\/google\/models\/([^/:]+):streamGenerateContent\?alt=sse$/,
    inner: ({ body }, model) => ({ path: `/v1beta/models/${model}:streamGenerateContent?alt=sse`, body }),
  },
  "vertex-claude": {
    path: /^\/v1\/projects\/p1\/locations\/global\/publishers\/anthropic\/models\/([^/:]+):streamRawPredict$/,
    wrong: ({ body }) => {
      if ("model" in body) return "model: Extra inputs are not permitted";
      if (body["anthropic_version"] !== "vertex-2023-10-16") return "anthropic_version: Field required";
      if (body["stream"] !== true) return "stream: Input should be true";
      return undefined;
    },
    inner: ({ body: { anthropic_version: version, ...body } }, model) => ({
      path: "/v1/messages",
      body: version === undefined ? {} : { model, ...body },
    }),
  },
  azure: { path: /^\/openai\/v1\/responses$/, inner: same("/v1/responses") },
};

export interface Cloud {
  /** In place of the host in a preset's address. */
  readonly origin: string;
  readonly model: ScriptedModelServer;
  /** Tokens in the order of the requests. */
  readonly tokens: readonly string[];
  readonly taken: readonly Taken[];
}

export interface CloudOptions {
  readonly models?: Readonly<Record<string, { window: number; maxOutput?: number; reasoning?: boolean }>>;
  /** What the cloud answers instead, by the token and the number of the request. */
  readonly refuses?: (
    token: string,
    index: number,
  ) => { status: number; text: string; headers?: Record<string, string> } | undefined;
}

export async function startCloud(
  preset: PresetName,
  script: ModelScript | Turn,
  { models = {}, refuses = () => undefined }: CloudOptions = {},
): Promise<Cloud> {
  const served = Object.fromEntries(
    Object.entries(models).map(([name, model]) => [name, { maxOutput: 8_000, ...model }]),
  );
  const model = await startScriptedModel(script, { models: served, apiKey: KEY });
  onTestFinished(() => model.close());
  const tokens: string[] = [];
  const taken: Taken[] = [];
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    // Clients look whether a server says what it has; they have no token.
    if (incoming.method !== "POST") return void outgoing.writeHead(404).end();
    const request = await read(incoming);
    const token = /^Bearer (\S+)$/.exec(request.headers["authorization"] ?? "")?.[1] ?? "";
    tokens.push(token);
    taken.push(request);
    const refusal = refuses(token, tokens.length - 1) ?? problem(DOORS[preset], request, token);
    if (refusal !== undefined) {
      outgoing.writeHead(refusal.status, { "content-type": "application/json", ...refusal.headers });
      outgoing.end(refusal.text);
      return;
    }
    await handOn(model, DOORS[preset], request, outgoing);
  };
  const server = createServer((incoming, outgoing) => void serve(incoming, outgoing));
  return { origin: `http://127.0.0.1:${await listen(server)}`, model, tokens, taken };
}

async function read(incoming: IncomingMessage): Promise<Taken> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  const body = JSON.parse(Buffer.concat(parts).toString("utf8")) as Record<string, unknown>;
  return { path: incoming.url ?? "", headers: incoming.headers as Record<string, string>, body };
}

function problem(door: Door, request: Taken, token: string) {
  const refused = (status: number, message: string) => ({
    status,
    text: JSON.stringify({ error: { message } }),
    headers: {},
  });
  if (token === "") return refused(401, "Request is missing required authentication credential.");
  const key = ["x-api-key", "x-goog-api-key", "api-key"].find((name) => request.headers[name] !== undefined);
  if (key !== undefined) return refused(400, `A token and the header ${key} were both sent.`);
  if (!door.path.test(request.path)) return refused(404, `There is nothing at ${request.path}.`);
  const wrong = door.wrong?.(request);
  return wrong === undefined ? undefined : refused(400, wrong);
}

async function handOn(model: ScriptedModelServer, door: Door, request: Taken, outgoing: ServerResponse) {
  const named = decodeURIComponent(door.path.exec(request.path)?.[1] ?? "");
  const { path, body } = door.inner(request, named);
  const answer = await fetch(new URL(path, model.baseUrl), {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${KEY}`,
      "x-api-key": KEY,
      "x-goog-api-key": KEY,
      "anthropic-version": "2023-06-01",
    },
    body: JSON.stringify(body),
  });
  outgoing.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "text/plain" });
  for await (const part of answer.body ?? []) outgoing.write(part);
  outgoing.end();
}

/** Signs a Bedrock token's request again, as the service does. @returns whether it is the secret's */
export function isSignedBy(token: string, secret: string): boolean {
  const text = Buffer.from(token.replace(/^bedrock-api-key-/, ""), "base64").toString("utf8");
  const url = new URL(`https://${text}`);
  const signature = url.searchParams.get("X-Amz-Signature");
  const pairs = url.search.slice(1).split("&");
  const canonical = pairs
    .filter((pair) => !/^(X-Amz-Signature|Version)=/.test(pair))
    .toSorted()
    .join("&");
  const scope = (url.searchParams.get("X-Amz-Credential") ?? "").split("/").slice(1);
  const sha256 = (value: string) => createHash("sha256").update(value).digest("hex");
  const request = `POST\n/\n${canonical}\nhost:${url.host}\n\nhost\n${sha256("")}`;
  const string = `AWS4-HMAC-SHA256\n${url.searchParams.get("X-Amz-Date")}\n${scope.join("/")}\n${sha256(request)}`;
  let key: string | Buffer = `AWS4${secret}`;
  for (const part of scope) key = createHmac("sha256", key).update(part).digest();
  return pairs.includes("Version=1") && createHmac("sha256", key).update(string).digest("hex") === signature;
}
