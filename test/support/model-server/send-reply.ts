/** Sends one reply on an open response: headers, pieces, pauses, faults. */
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { AnswerWriter, Closing, ContentPart } from "./answer-writer.ts";
import type { Reply, ReplyPart } from "./wire.ts";

const CHUNK_CHARS = 200;

/**
 * Resolves when everything is sent; a hang resolves when `signal` (the connection's end) fires.
 * Without pauses the whole answer is one write, so that a zero-latency server costs its clients only parsing.
 */
export async function sendReply(
  response: ServerResponse,
  reply: Reply,
  writer: AnswerWriter,
  closing: Closing,
  options: { readonly stream: boolean; readonly signal: AbortSignal; readonly drop: () => void },
): Promise<void> {
  const { signal } = options;
  if (!(await waited(reply.beforeHeaders, options))) return;
  if (reply.error !== undefined) {
    sendJson(response, reply.error.status, reply.error.body, reply.error.headers);
    return;
  }
  const chunkChars = reply.chunkChars ?? CHUNK_CHARS;
  if (!options.stream) {
    for (const part of reply.parts ?? []) if (isContent(part)) for (const _ of writer.part(part, Infinity));
    sendJson(response, 200, writer.whole(closing));
    return;
  }
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
  });
  let pending = "";
  const flush = (): void => {
    if (pending !== "") response.write(pending);
    pending = "";
  };
  // Headers are sent at once if the first piece is delayed.
  if (reply.parts?.[0]?.type === "hang" || reply.parts?.[0]?.type === "wait") response.flushHeaders();
  else pending = writer.begin();
  for (const part of reply.parts ?? []) {
    if (signal.aborted) return;
    if (isContent(part)) {
      for (const frame of writer.part(part, chunkChars)) {
        pending += frame.text;
        if (!frame.delta || reply.chunkDelayMs === undefined) continue;
        flush();
        if (!(await pause(reply.chunkDelayMs, signal))) return;
      }
      continue;
    }
    if (part.type === "garbage") pending += part.text;
    if (part.type === "error") pending += writer.error(part.code ?? null, part.message);
    flush();
    if (part.type === "wait" && !(await pause(part.ms, signal))) return;
    if (part.type === "hang") return ended(signal);
    if (part.type === "drop") {
      // What was written must arrive first, or the cut would come before the headers.
      await pause(5, signal);
      options.drop();
      return;
    }
    if (part.type === "end" || part.type === "error") {
      response.end();
      return;
    }
  }
  response.end(pending + writer.finish(closing));
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = typeof body === "string" ? body : (JSON.stringify(body) ?? "");
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(text);
}

function isContent(part: ReplyPart): part is ContentPart {
  return part.type === "text" || part.type === "refusal" || part.type === "reasoning" || part.type === "call";
}

async function waited(
  before: Reply["beforeHeaders"],
  { signal, drop }: { readonly signal: AbortSignal; readonly drop: () => void },
): Promise<boolean> {
  if (before === undefined) return true;
  if (before === "drop") {
    drop();
    return false;
  }
  if (before === "hang") {
    await ended(signal);
    return false;
  }
  return pause(before, signal);
}

async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
  return !signal.aborted;
}

function ended(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
