/** A whole session as export and report read it, without a database. */
import type { readWhole, SessionRow } from "../../activities/store/reading.ts";
import type { BillRow, MessageRow } from "./checker/evidence.ts";
import { billRow, messageRow as soundRow } from "./checker/sound-evidence.ts";

type Whole = Awaited<ReturnType<typeof readWhole>>;

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
  verified: null,
  createdAt: AT,
  updatedAt: AT,
  endedAt: AT,
  parentId: null,
  parentCall: null,
  owner: null,
};

/** One row; its sequence is its place. */
const messageRow = (sequence: number, row: Partial<MessageRow>): MessageRow =>
  soundRow({
    sequence,
    sessionId: sessionRow.id,
    step: 1,
    slot: "assistant",
    role: "assistant",
    kind: "answer",
    content: [],
    tokenCount: 10,
    createdAt: AT,
    ...row,
  });

const bill = (step: number, row: Partial<BillRow> = {}): BillRow =>
  billRow({ id: step, step, sessionId: sessionRow.id, cachedTokens: 400, createdAt: AT, ...row });

/** A task, a step with two calls of which one has no result, a summary, an abandoned answer, the last text. */
export const wholeSession: Whole = {
  delegations: [],
  verifications: [],
  waits: [],
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
  modelCalls: [bill(1), bill(1, { purpose: "summary" }), bill(2, { epoch: 2 })],
};
