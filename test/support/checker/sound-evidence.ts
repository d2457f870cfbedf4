/** A small session in which every claim holds, for tests that break one thing at a time. */
import type { ParsedRequest, ServedRequest, WireItem } from "../model-server/wire.ts";
import type { EventData } from "../../../activities/store/event.ts";
import type { BillRow, CallRow, Evidence, MessageRow } from "./evidence.ts";

const ID = "sound";
const START = Date.parse("2026-11-21T10:00:00Z");
const FIRST_RUN = { ordinal: 1, epoch: 1, startStep: 0, parentEpoch: null, previous: null, forkedFrom: null };
const LIVE = { supersededEpoch: null, supersededBy: null };
const at = (second: number) => new Date(START + second * 1_000);

export function messageRow(row: Partial<MessageRow> & Pick<MessageRow, "sequence" | "step">): MessageRow {
  return {
    id: row.sequence,
    sessionId: ID,
    position: row.sequence,
    epoch: 1,
    slot: "user",
    role: "user",
    kind: "guidance",
    content: [{ type: "text", text: "words" }],
    meta: null,
    tokenCount: 5,
    isCompacted: false,
    compactedRound: null,
    compactedAt: null,
    prunedStep: null,
    prunedAt: null,
    supersededEpoch: null,
    createdAt: at(row.sequence),
    ...row,
  };
}

const answer = (sequence: number, step: number, usage: { input: number; output: number }, calls: string[]) =>
  messageRow({
    sequence,
    step,
    slot: "assistant",
    role: "assistant",
    kind: "answer",
    meta: { usage, finish: "stop" },
    content: [
      { type: "text", text: `answer ${step}` },
      ...calls.map((toolCallId, index) => ({
        type: "tool-call",
        toolCallId,
        toolName: "bash",
        input: { command: `echo m${step}-${index} >> run.marks` },
      })),
    ],
  });

const result = (sequence: number, step: number, index: number, toolCallId: string) =>
  messageRow({
    sequence,
    step,
    slot: `tool:${index}`,
    role: "tool",
    kind: "tool",
    content: [{ type: "tool-result", toolCallId, toolName: "bash", outcome: "completed", text: "ok" }],
  });

/** A call that has ended well. */
export const callRow = (sequence: number, step: number, index: number, callId: string): CallRow => ({
  sessionId: ID,
  epoch: 1,
  step,
  index,
  callId,
  name: "bash",
  sequence,
  status: "completed",
  fence: 1,
  container: null,
  exitCode: 0,
  streams: null,
  truncated: false,
  startedAt: at(sequence),
  finishedAt: at(sequence),
  mcpServer: null,
  mcpState: null,
  mcpTask: null,
  background: null,
  backgroundEnd: null,
  ...LIVE,
});

export function billRow(row: Partial<BillRow> & Pick<BillRow, "id" | "step">): BillRow {
  return {
    sessionId: ID,
    epoch: 1,
    attempt: 1,
    purpose: "step",
    model: "openai/gpt-4o",
    status: "kept",
    finish: "stop",
    error: null,
    estimatedInput: 1_000,
    estimatePure: false,
    inputTokens: 1_000,
    cachedTokens: 0,
    cacheWriteTokens: null,
    costUsd: null,
    outputTokens: 50,
    reasoningTokens: 0,
    firstTokenMs: 1,
    durationMs: 2,
    createdAt: at(row.id),
    ...row,
  };
}

const bill = (step: number, inputTokens: number, outputTokens: number) =>
  billRow({ id: step, step, estimatedInput: inputTokens, inputTokens, outputTokens });

const event = (seq: number, step: number, type: string, data: unknown) => ({
  sessionId: ID,
  seq,
  epoch: 1,
  step,
  attempt: 1,
  type,
  data,
  at: at(seq + 10),
});

const RESPONSE: EventData["llm:response"] = {
  content: "",
  reasoning: "",
  finish: "stop",
  tokenUsage: { input: 0, output: 0, cached: 0, reasoning: 0 },
  contextUsed: 0,
  contextEstimated: false,
  contextLimit: 0,
  costUsd: null,
  durationMs: 0,
  model: "openai/gpt-4o",
  provider: "openai",
};
const RESULT: Omit<EventData["llm:tool-result"], "callId" | "index"> = {
  name: "bash",
  outcome: "completed",
  durationMs: 0,
  exitCode: 0,
  truncated: false,
  excerpt: "",
};
const DEQUEUED: EventData["message:dequeued"] = {
  count: 2,
  ids: ["one", "two"],
  coalesced: true,
  text: "",
  firstQueuedAt: "",
  lastQueuedAt: "",
};

const item = (text: string): WireItem => ({ type: "message", role: "user", parts: [{ type: "text", text }] });

export function servedEntry(
  second: number,
  input: number,
  output: number,
  ...texts: string[]
): ServedRequest {
  const request: ParsedRequest = {
    api: "responses",
    model: "gpt-4o",
    stream: true,
    system: "You are an agent.",
    items: texts.map(item),
    tools: [],
    maxOutputTokens: 100,
    cacheKey: ID,
    raw: { input: texts },
    headers: {},
    bytes: 10,
    inputTokens: input,
  };
  const usage = { input, output, cached: 0, reasoning: 0 };
  return { request, receivedAt: at(second).getTime(), status: 200, usage };
}

/** Three steps: two calls at once, a person's message, a compaction, the end. */
export function soundEvidence(): Evidence {
  const compacted = { isCompacted: true, compactedRound: 1, compactedAt: at(9) };
  const summary = "Session Summary (Compaction Round 1)";
  const ended: EventData["session:ended"] = {
    status: "completed",
    reason: null,
    text: "",
    usage: { input: 600, cached: 0, output: 60, reasoning: 0, calls: 3 },
    costUsd: null,
    steps: 3,
    rounds: 1,
    durationMs: 0,
  };
  return {
    session: {
      id: ID,
      createdAt: at(0),
      updatedAt: at(30),
      endedAt: at(30),
      status: "completed",
      task: "Do it.",
      config: {},
      epoch: 1,
      runId: "run-1",
      container: null,
      restoreWorkspace: false,
      verified: null,
      result: "answer 3",
      error: null,
      parentId: null,
      parentCall: null,
      parentEpoch: null,
      access: null,
      owner: null,
      namespace: null,
    },
    cursor: { messageSequence: 8, eventSeq: 7 },
    runs: [{ ...FIRST_RUN, sessionId: ID, runId: "run-1", chain: "run-1", startedAt: at(0) }],
    messages: [
      messageRow({ sequence: 1, step: 0, kind: "task" }),
      { ...answer(2, 1, { input: 100, output: 10 }, ["a", "b"]), ...compacted },
      { ...result(3, 1, 0, "a"), ...compacted },
      { ...result(4, 1, 1, "b"), ...compacted },
      messageRow({ sequence: 5, step: 2, meta: { ids: ["one", "two"] } }),
      answer(6, 2, { input: 200, output: 20 }, []),
      messageRow({
        sequence: 7,
        position: 4.5,
        step: 3,
        slot: "summary:1",
        role: "assistant",
        kind: "summary",
        content: [{ type: "text", text: summary }],
      }),
      answer(8, 3, { input: 300, output: 30 }, []),
    ],
    calls: [callRow(3, 1, 0, "a"), callRow(4, 1, 1, "b")],
    rounds: [
      {
        id: 1,
        sessionId: ID,
        epoch: 1,
        step: 3,
        round: 1,
        trigger: "manual",
        strategy: "reactive-overflow",
        status: "compacted",
        reason: null,
        attempts: [],
        tokensBefore: 500,
        tokensAfter: 200,
        fromSequence: 2,
        toSequence: 4,
        summaryContent: summary,
        replaced: "{[2,5)}",
        durationMs: 3,
        ...LIVE,
        createdAt: at(25),
      },
    ],
    bills: [bill(1, 100, 10), bill(2, 200, 20), bill(3, 300, 30)],
    waits: [],
    verifications: [],
    spent: { calls: 3, costUsd: 0 },
    reserved: 0,
    parked: [],
    events: [
      event(1, 1, "llm:response", RESPONSE),
      event(2, 1, "llm:tool-result", { ...RESULT, callId: "a", index: 0 }),
      event(3, 1, "llm:tool-result", { ...RESULT, callId: "b", index: 1 }),
      event(4, 2, "message:dequeued", DEQUEUED),
      event(5, 2, "llm:response", RESPONSE),
      event(6, 3, "llm:response", RESPONSE),
      event(7, 3, "session:ended", ended),
    ],
    chunks: [],
    histories: [
      {
        runId: "run-1",
        status: "COMPLETED",
        accepted: ["one", "two"],
        text: "{}",
        largestPayload: 2_000,
        replayFailure: undefined,
      },
    ],
    served: [
      servedEntry(10, 100, 10, "task"),
      servedEntry(20, 200, 20, "task", "answer 1", "guidance"),
      servedEntry(28, 300, 30, "task", "summary", "guidance"),
    ],
    sandboxes: [],
    marks: new Map([["run.marks", ["m1-0", "m1-1"]]]),
    canaries: ["sk-canary"],
    watched: undefined,
    kills: 0,
  };
}
