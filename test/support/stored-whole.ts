/** A whole session as export and report read it, without a database. */
import type { readWhole, SessionRow } from "../../activities/store/reading.ts";

type Whole = Awaited<ReturnType<typeof readWhole>>;
type MessageRow = Whole["messages"][number];
type CallRow = Whole["modelCalls"][number];

export const AT = new Date("2026-01-02T03:04:05.000Z");

export const sessionRow: SessionRow = {
  id: "calm-otter",
  status: "completed",
  task: "Fix <b>it</b>",
  config: { model: "openai/gpt-4o", price: { input: 2, cached: 1, output: 10 } },
  epoch: 1,
  runId: "run-1",
  result: "Fixed.",
  error: null,
  createdAt: AT,
  updatedAt: AT,
  endedAt: AT,
  parentId: null,
  parentCall: null,
  owner: null,
};

/** One row; its sequence is its place. */
function messageRow(sequence: number, row: Partial<MessageRow>): MessageRow {
  return {
    id: sequence,
    sessionId: sessionRow.id,
    sequence,
    position: sequence,
    epoch: 1,
    step: 1,
    slot: "assistant",
    role: "assistant",
    kind: "answer",
    content: [],
    meta: null,
    tokenCount: 10,
    isCompacted: false,
    compactedRound: null,
    compactedAt: null,
    prunedStep: null,
    supersededEpoch: null,
    createdAt: AT,
    ...row,
  };
}

function billRow(step: number, row: Partial<CallRow> = {}): CallRow {
  return {
    id: step,
    sessionId: sessionRow.id,
    epoch: 1,
    step,
    attempt: 1,
    purpose: "step",
    model: "openai/gpt-4o",
    status: "kept",
    finish: "stop",
    error: null,
    estimatedInput: 1_000,
    estimatePure: false,
    inputTokens: 1_000,
    cachedTokens: 400,
    cacheWriteTokens: null,
    costUsd: null,
    outputTokens: 50,
    reasoningTokens: 0,
    firstTokenMs: 1,
    durationMs: 2,
    createdAt: AT,
    ...row,
  };
}

/** A task, a step with two calls of which one has no result, a summary, an abandoned answer, the last text. */
export const wholeSession: Whole = {
  delegations: [],
  messages: [
    messageRow(1, {
      role: "user",
      kind: "task",
      slot: "user",
      step: 0,
      content: [
        { type: "text", text: "Fix <b>it</b>" },
        { type: "file", mediaType: "image/png", data: "@blob:1", filename: "a.png" },
      ],
    }),
    messageRow(2, {
      compactedRound: 1,
      content: [
        { type: "reasoning", text: "Look first." },
        { type: "text", text: "I look." },
        { type: "tool-call", toolCallId: "c1", toolName: "bash", input: { command: "ls" } },
        { type: "tool-call", toolCallId: "c2", toolName: "bash", input: "not json" },
      ],
    }),
    messageRow(3, {
      role: "tool",
      kind: "tool",
      slot: "tool:0",
      content: [
        {
          type: "tool-result",
          toolCallId: "c1",
          toolName: "bash",
          outcome: "completed",
          text: "</pre><script>",
        },
      ],
    }),
    messageRow(4, {
      kind: "summary",
      slot: "summary:1",
      content: [{ type: "text", text: "Session Summary" }],
    }),
    messageRow(5, { step: 2, supersededEpoch: 2, content: [{ type: "text", text: "abandoned" }] }),
    messageRow(6, { step: 2, epoch: 2, content: [{ type: "text", text: "Fixed." }] }),
  ],
  toolCalls: [],
  compactionEvents: [],
  modelCalls: [billRow(1), billRow(1, { purpose: "summary" }), billRow(2, { epoch: 2 })],
};
