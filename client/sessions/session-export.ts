/** A whole session as one document, and one call of it. */
import { shellWord } from "../console/format.ts";
import type { ToolOutcome } from "../../activities/contract/message.ts";
import { textsApart, type TextsApart } from "../../activities/text/streams.ts";
import type { readWhole, SessionRow } from "../../activities/store/reading.ts";
import { callWithResult } from "../../activities/store/tool-calls.ts";
import { createSessionMemory } from "../../activities/store/transcript-search.ts";
import type { Services } from "../connect/connection.ts";
import { notPossible } from "../console/errors.ts";

type Whole = Awaited<ReturnType<typeof readWhole>>;

/** Raised when a field changes its meaning; fields are only ever added. */
const EXPORT_VERSION = 1;

/**
 * The session with its transcript, ledger, compactions, bills, waits and what `verify` came to, including superseded and compacted rows,
 * marked.
 */
export function exportDocument(row: SessionRow, whole: Whole) {
  const inputs = callInputs(whole.messages);
  const results = callResults(whole.messages);
  return {
    format: "longhaul",
    version: EXPORT_VERSION,
    session: row,
    messages: whole.messages.map(withoutSession),
    toolCalls: whole.toolCalls.map((call) => {
      const result = results.get(call.sequence) ?? null;
      return {
        ...withoutSession(call),
        input: inputs.get(keyOf(call.epoch, call.step, call.callId)) ?? null,
        result,
        ...textsApart(result ?? "", call.streams),
      };
    }),
    compactionEvents: whole.compactionEvents.map(withoutSession),
    modelCalls: whole.modelCalls.map(withoutSession),
    // Their sessions are exported on their own.
    delegations: whole.delegations.map(withoutSession),
    verifications: whole.verifications.map(withoutSession),
    waits: whole.waits.map(withoutSession),
  };
}

/** How a tool call ended. */
export interface CallResult extends TextsApart {
  readonly name: string;
  /** `pending` and `running`: it has no result yet. */
  readonly status: "pending" | "running" | ToolOutcome;
  /** Of a command; null if it has none. */
  readonly exitCode: number | null;
  /** What the model read: of a command, both streams and our notes. Null if it has no result yet. */
  readonly text: string | null;
  /** The middle of the text was left out, and so of the streams. */
  readonly truncated: boolean;
}

/** @throws ClientError (impossible) if the session has no such call */
export async function callResult(
  { store }: Pick<Services, "store">,
  { id }: SessionRow,
  callId: string,
): Promise<CallResult> {
  const call = await callWithResult(store.db, id, callId);
  if (call === undefined) throw notPossible(`Session ${id} has no call ${JSON.stringify(callId)}.`);
  const { name, status, exitCode, truncated, streams } = call.row;
  const text = textOf(call.content) ?? null;
  // Cast safely: a check of the table holds these values.
  const known = status as CallResult["status"];
  return { name, status: known, exitCode, text, truncated, ...textsApart(text ?? "", streams) };
}

/** Characters of one page. Chosen: a page is one query. */
const PAGE_CHARS = 1_000_000;

/**
 * All of an output, by its handle: of a call, or of a command that verified the work.
 * @throws ClientError (impossible) if the session has no such output
 */
export async function wholeOutputText(
  { store }: Pick<Services, "store">,
  { id }: Pick<SessionRow, "id">,
  handle: string,
): Promise<string> {
  const memory = createSessionMemory(store.db, id);
  const pages: string[] = [];
  for (let from = 0; ;) {
    const page = await memory.readOutput(handle, from, PAGE_CHARS);
    if (page === undefined)
      throw notPossible(
        `Session ${id} has no output with the handle ${JSON.stringify(handle)}.`,
        `Handles are in its events and rows: longhaul export ${shellWord(id)}`,
      );
    pages.push(page.text);
    if (page.end >= page.total || page.end <= from) return pages.join("");
    from = page.end;
  }
}

/** The document names the session once, not in each row. */
function withoutSession<Row extends { sessionId: string }>(row: Row): Omit<Row, "sessionId"> {
  return Object.fromEntries(Object.entries(row).filter(([name]) => name !== "sessionId")) as Omit<
    Row,
    "sessionId"
  >;
}

const keyOf = (epoch: number, step: number, callId: string) => `${epoch}/${step}/${callId}`;

/** The calls' inputs are in the assistant message only. */
function callInputs(messages: Whole["messages"]): Map<string, unknown> {
  const inputs = new Map<string, unknown>();
  for (const { role, content, epoch, step } of messages) {
    if (role !== "assistant" || !Array.isArray(content)) continue;
    for (const part of content as { type?: string; toolCallId?: string; input?: unknown }[]) {
      if (part.type === "tool-call" && part.toolCallId !== undefined) {
        inputs.set(keyOf(epoch, step, part.toolCallId), part.input);
      }
    }
  }
  return inputs;
}

function callResults(messages: Whole["messages"]): Map<number, string> {
  const results = new Map<number, string>();
  for (const { role, content, sequence } of messages) {
    if (role !== "tool") continue;
    const text = textOf(content);
    if (text !== undefined) results.set(sequence, text);
  }
  return results;
}

function textOf(content: unknown): string | undefined {
  const [part] = Array.isArray(content) ? (content as { readonly text?: unknown }[]) : [];
  return typeof part?.text === "string" ? part.text : undefined;
}
