/** JSON requests and answers, and failures as HTTP statuses. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { z } from "zod";
import { issueTexts } from "../../activities/config/issue-text.ts";
import { missingServiceOf } from "../connect/missing-service.ts";
import { ClientError, exitCodes, NoSuchSession, usageError } from "../console/errors.ts";

/** A message has at most 1 MiB of characters, each of up to 6 bytes as JSON writes them; a file of 8 MiB is 10.7 in base64. */
const MAX_BODY_BYTES = 12 * 1024 * 1024;

/** Headers of every answer: no caching, framing, type guessing or referrer. */
export const HEADERS = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
} as const;

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { ...HEADERS, "content-type": "application/json; charset=utf-8" });
  response.end(`${JSON.stringify(body)}\n`);
}

/** @throws ClientError (usage) for an invalid JSON document */
export async function readBody<T>(request: IncomingMessage, schema: z.ZodType<T>): Promise<T> {
  const type = request.headers["content-type"] ?? "";
  // A form of another site may send other types without a preflight request.
  if (!/^application\/json\b/i.test(type)) throw usageError("Send JSON: Content-Type: application/json");
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MAX_BODY_BYTES) throw usageError(`The body has more than ${MAX_BODY_BYTES} bytes.`);
    pieces.push(piece);
  }
  let json: unknown;
  try {
    json = JSON.parse(Buffer.concat(pieces).toString("utf8"));
  } catch {
    throw usageError("The body is not JSON.");
  }
  return parse(schema, json);
}

/**
 * @param name of a value that is not a field, such as a header
 * @throws ClientError (usage) that names the wrong field
 */
export function parse<T>(schema: z.ZodType<T>, value: unknown, name?: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const texts = issueTexts(parsed.error, schema).join("; ");
  const text = name === undefined ? texts : `${name}: ${texts}`;
  throw usageError(text.endsWith("?") ? text : `${text}.`);
}

export interface Failure {
  readonly status: number;
  readonly body: {
    readonly error: { readonly message: string; readonly fix: string | null; readonly exitCode: number };
  };
}

/** The same message as the command's; an unexpected error is reported without its details. */
export function httpFailure(error: unknown): Failure {
  const known = error instanceof ClientError ? error : missingServiceOf(error);
  if (known === undefined)
    return failure(500, "The request failed; the server's output says why.", exitCodes.failed);
  return failure(statusOf(known), known.message, known.exitCode, known.fix);
}

function failure(status: number, message: string, exitCode: number, fix?: string): Failure {
  return { status, body: { error: { message, fix: fix ?? null, exitCode } } };
}

function statusOf(error: ClientError): number {
  if (error instanceof NoSuchSession) return 404;
  if (error.exitCode === exitCodes.usage) return 400;
  if (error.exitCode === exitCodes.impossible) return 409;
  return error.exitCode === exitCodes.missing ? 503 : 500;
}
