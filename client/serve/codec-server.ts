/**
 * Decodes Temporal's payloads for its Web UI and its command line, and encodes a person's input there. On this machine
 * alone; requests need the token, as a bearer or in the path, since the Web UI cannot send custom headers.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import type { PayloadCodec } from "@temporalio/common";
import { reasonOf } from "../../activities/contract/errors.ts";
import { checkBearer } from "./local-server.ts";
import { httpFailure, HEADERS, readBody, sendJson } from "./http.ts";

interface CodecServing {
  readonly codec: PayloadCodec;
  /** 0 = a free one. */
  readonly port: number;
  readonly token: string;
  /** Origins of the Web UI: pages of other sites get no answer. */
  readonly origins: ReadonlySet<string>;
}

const LOOPBACK = "127.0.0.1";
const base64 = z.base64();
const bodySchema = z.object({
  payloads: z.array(
    z.looseObject({ metadata: z.record(z.string(), base64).default({}), data: base64.default("") }),
  ),
});

/** @throws NodeJS.ErrnoException if the port cannot be opened */
export async function serveCodec(serving: CodecServing) {
  const server = createServer((request, response) => void answer(serving, request, response));
  server.listen(serving.port, LOOPBACK);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${LOOPBACK}:${port}`,
    async close(): Promise<void> {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(
  { codec, token, origins }: CodecServing,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { origin } = request.headers;
  if (origin !== undefined && !origins.has(origin))
    return refuse(response, 403, "The Origin header names another site.");
  for (const [name, value] of corsHeaders(origin)) response.setHeader(name, value);
  if (request.method === "OPTIONS") return void response.writeHead(204, HEADERS).end();
  const [, inPath, verb] = /^(?:\/([\w-]+))?\/(encode|decode)$/.exec(request.url ?? "") ?? [];
  if (verb === undefined || request.method !== "POST")
    return refuse(response, 404, "There are POST /encode and POST /decode.");
  const authorization = inPath === undefined ? request.headers.authorization : `Bearer ${inPath}`;
  const guard = {
    tokens: new Map([[token, undefined]]),
    hosts: new Set<string>(),
    origins: new Set<string>(),
  };
  const bearer = checkBearer(guard, authorization === undefined ? {} : { authorization });
  if ("status" in bearer) return refuse(response, bearer.status, "The token is not valid for this server.");
  try {
    const { payloads } = await readBody(request, bodySchema);
    const inputs = payloads.map(({ metadata, data }) => ({
      metadata: bytesOf(metadata),
      data: Buffer.from(data, "base64"),
    }));
    const outputs = verb === "encode" ? await codec.encode(inputs) : await codec.decode(inputs);
    const jsonPayloads = outputs.map(({ metadata, data }) => ({
      metadata: textsOf(metadata ?? {}),
      data: Buffer.from(data ?? []).toString("base64"),
    }));
    sendJson(response, 200, { payloads: jsonPayloads });
  } catch (error) {
    const { status } = httpFailure(error);
    refuse(response, status === 500 ? 422 : status, reasonOf(error));
  }
}

function corsHeaders(origin: string | undefined): [string, string][] {
  if (origin === undefined) return [];
  return [
    ["access-control-allow-origin", origin],
    ["access-control-allow-methods", "POST"],
    ["access-control-allow-headers", "authorization, content-type, x-namespace"],
    ["access-control-allow-credentials", "true"],
    ["vary", "origin"],
  ];
}

function refuse(response: ServerResponse, status: number, message: string): void {
  sendJson(response, status, { error: { message } });
}

const bytesOf = (texts: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text, "base64")]));

const textsOf = (metadata: Readonly<Record<string, Uint8Array>>) =>
  Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => [name, Buffer.from(value).toString("base64")]),
  );
