/** A whole session as one document. Pure. */
import type { readWhole, SessionRow } from "../../activities/store/reading.ts";

type Whole = Awaited<ReturnType<typeof readWhole>>;

/** Raised when a field changes its meaning; fields are only ever added. */
const EXPORT_VERSION = 1;

/** The session with its transcript, ledger, compactions and bills, including superseded and compacted rows, marked. */
export function exportDocument(row: SessionRow, whole: Whole) {
  const inputs = callInputs(whole.messages);
  const results = callResults(whole.messages);
  return {
    format: "longhaul",
    version: EXPORT_VERSION,
    session: row,
    messages: whole.messages.map(withoutSession),
    toolCalls: whole.toolCalls.map((call) => ({
      ...withoutSession(call),
      input: inputs.get(keyOf(call.epoch, call.step, call.callId)) ?? null,
      result: results.get(call.sequence) ?? null,
    })),
    compactionEvents: whole.compactionEvents.map(withoutSession),
    modelCalls: whole.modelCalls.map(withoutSession),
    // Their sessions are exported on their own.
    delegations: whole.delegations.map(withoutSession),
  };
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
    if (role !== "tool" || !Array.isArray(content)) continue;
    const text = (content as { text?: unknown }[])[0]?.text;
    if (typeof text === "string") results.set(sequence, text);
  }
  return results;
}
