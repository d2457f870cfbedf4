/** Random histories of a session, for property tests: events as data, and a driver that applies them. */
import fc from "fast-check";
import { ActivityCancellationDetails } from "@temporalio/common";
import { lastRound } from "../../activities/store/compactions.ts";
import type { ReplyPart } from "./model-server/wire.ts";
import { summaryText } from "./compacting.ts";
import { guidance, type DirectAgent } from "./direct-agent.ts";
import { eventually } from "./eventually.ts";
import { call, text, thought, type Turn } from "./scripted-model.ts";
import { isSummaryRequest } from "./scripted-summaries.ts";
import { callRows } from "./stored.ts";

/** A call, and whether the worker crashed before it ran it. */
interface RandomCall {
  readonly name: "read_file" | "view_image" | "write_file" | "todo" | "nonsense";
  readonly arguments: unknown;
  /** The provider's id; some providers use one twice. */
  readonly callId?: string;
  readonly crashed: boolean;
}

export type Happening =
  | {
      readonly kind: "step";
      readonly says: string;
      readonly thinks: string;
      readonly calls: readonly RandomCall[];
      /** A person's message before it; an empty text is possible because a signal can bring one. */
      readonly messages: readonly string[];
    }
  | { readonly kind: "cancelled step"; readonly says: string }
  | {
      readonly kind: "compaction";
      readonly trigger: "threshold" | "overflow" | "manual";
      readonly summary: string;
    }
  | { readonly kind: "prune" }
  | { readonly kind: "undo" }
  /** Temporal's reset to an earlier step: `back` steps ago, before its model call or before its tools. */
  | { readonly kind: "reset"; readonly back: number; readonly phase: "model" | "tools" }
  /** The run ends with calls open, by itself or by Terminate, after which no code of ours runs; a message resumes it. */
  | { readonly kind: "resume"; readonly terminated: boolean };

const big = (lines: number) => "The build printed another line of no great interest.\n".repeat(lines);

const randomCall: fc.Arbitrary<RandomCall> = fc.record(
  {
    name: fc.constantFrom<RandomCall["name"]>(
      "read_file",
      "read_file",
      "view_image",
      "write_file",
      "todo",
      "nonsense",
    ),
    arguments: fc.constantFrom<unknown>(
      { path: "big.txt", limit: 150 },
      { path: "big.txt", limit: 20 },
      { path: "dot.png" },
      { path: "made.ts", content: big(40) },
      { items: [{ content: "an open item", status: "pending" }] },
      "{not json",
      {},
    ),
    callId: fc.constantFrom("call_same", "call_other"),
    crashed: fc.integer({ min: 0, max: 9 }).map((dice) => dice < 2),
  },
  { requiredKeys: ["name", "arguments", "crashed"] },
);

const messageText = fc.constantFrom("", "A word.", "两个字", "A long answer. ".repeat(60));

const goodWords = summaryText({ state: "It goes on." });
const summaries = fc.constantFrom(goodWords, goodWords, "Sure, what is next?", "", big(3_000));

export const happening: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant("step" as const),
      says: messageText,
      thinks: fc.constantFrom("", "", "I should look first."),
      calls: fc.array(randomCall, { maxLength: 4 }),
      messages: fc.array(
        fc.constantFrom("use pnpm", "🦊 not that", " ", "Remember the rule of the quay. ".repeat(100)),
        { maxLength: 3 },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("cancelled step" as const), says: messageText }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("compaction" as const),
      trigger: fc.constantFrom("threshold" as const, "overflow" as const, "manual" as const),
      summary: summaries,
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: "prune" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "undo" as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("reset" as const),
      back: fc.integer({ min: 0, max: 6 }),
      phase: fc.constantFrom("model" as const, "tools" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("resume" as const), terminated: fc.boolean() }) },
);

/** The session's position: next step, next compaction, current run. */
export interface Life {
  readonly agent: DirectAgent;
  step: number;
  /** Calls of the newest step whose worker died. */
  open: number[];
  round: number;
  runs: number;
  requests: number;
  /** The model's next answer. */
  answer: readonly ReplyPart[];
  summary: string;
  /** The newest message of a person on the live line that has a text. */
  lastSaid: { readonly step: number; readonly text: string }[];
}

/** The script of a random session's model: its current answer. A probe's answer does not matter. */
export function scriptOf(life: () => Pick<Life, "answer" | "summary">): Turn {
  return (request) => {
    if (request.system === PROBE) return { parts: [text("ok")] };
    return { parts: isSummaryRequest(request) ? [text(life().summary)] : life().answer };
  };
}

/** System prompt of requests that only test whether the server accepts them. */
export const PROBE = "A probe.";

export async function happen(life: Life, what: Happening): Promise<void> {
  const { agent } = life;
  // Temporal retries a call until it has a result, unless the run ends or another claims the session.
  if (what.kind !== "resume" && what.kind !== "reset")
    for (const index of life.open) await agent.perform("runTool", { step: life.step, index });
  life.open = [];
  switch (what.kind) {
    case "step": {
      const { says, thinks, calls, messages } = what;
      life.answer = [
        ...(thinks === "" ? [] : [thought(thinks)]),
        ...(says === "" ? [] : [text(says)]),
        ...calls.map((sketch) =>
          call(sketch.name, sketch.arguments, sketch.callId === undefined ? {} : { callId: sketch.callId }),
        ),
      ];
      const step = life.step + 1;
      await agent.say(...messages.map((message) => guidance(message)));
      const facts = await agent.perform("modelStep", { step });
      remember(life, step, messages);
      if (facts.kind !== "answered") return;
      life.step = step;
      const indexes = facts.calls.map((_, index) => index);
      life.open = indexes.filter((index) => calls[index]?.crashed === true);
      const run = indexes.filter((index) => calls[index]?.crashed !== true);
      await Promise.all(run.map((index) => agent.perform("runTool", { step, index })));
      return;
    }
    case "cancelled step": {
      life.answer = [...(what.says === "" ? [] : [text(what.says)]), { type: "hang" }];
      const environment = agent.environment();
      const step = life.step + 1;
      const requestCount = agent.model.log.length;
      let over = false;
      const running = agent.perform("modelStep", { step }, { environment }).finally(() => (over = true));
      // If the request is too large to be sent, there is nothing to cancel.
      await eventually(
        "the request or its end",
        () => over || agent.model.log[requestCount]?.request !== undefined,
      );
      environment.cancel("CANCELLED", new ActivityCancellationDetails({ cancelRequested: true }));
      if ((await running).kind === "interrupted") life.step = step;
      return;
    }
    case "compaction": {
      life.summary = what.summary;
      const { trigger } = what;
      const input = { step: life.step + 1, round: life.round + 1, trigger };
      const facts = await agent.perform("summarize", input);
      if (facts.kind === "compacted") life.round = facts.round;
      return;
    }
    case "prune":
      await agent.perform("prune", { step: life.step });
      return;
    case "undo":
      await agent.perform("undoCompaction", { step: life.step + 1, requestId: `undo-${++life.requests}` });
      return;
    case "reset": {
      const step = Math.max(1, life.step - what.back);
      if (step > life.step) return;
      agent.runId = `run-${++life.runs}`;
      if (what.phase === "model") {
        life.step = step - 1;
        forget(life, step);
        await happen(life, { kind: "step", says: "On the new line.", thinks: "", calls: [], messages: [] });
      } else {
        life.step = step;
        forget(life, step + 1);
        const [first, ...rest] = await callsOf(life, step);
        if (first === undefined) {
          // The step had no calls: the run continues with the next one.
          await happen(life, { kind: "step", says: "After it.", thinks: "", calls: [], messages: [] });
        } else {
          await agent.perform("runTool", { step, index: first });
          life.open = rest;
        }
      }
      life.round = await lastRound(agent.deps.store.db, agent.id);
      return;
    }
    case "resume": {
      if (!what.terminated) await agent.perform("closeSession", { step: life.step, status: "cancelled" });
      agent.runId = `run-${++life.runs}`;
      const session = await agent.perform("openSession", { chain: agent.runId });
      life.step = session.step;
      life.round = session.round;
      return;
    }
  }
}

function remember(life: Life, step: number, messages: readonly string[]): void {
  for (const message of messages) if (message.trim() !== "") life.lastSaid.push({ step, text: message });
}

function forget(life: Life, fromStep: number): void {
  life.lastSaid = life.lastSaid.filter((message) => message.step < fromStep);
}

/** Indices of a step's calls on the live line. */
async function callsOf({ agent }: Life, step: number): Promise<number[]> {
  const rows = await callRows(agent.deps.store, agent.id);
  const live = rows.filter((row) => row.step === step && row.supersededEpoch === null);
  return live.map(({ index }) => index).toSorted((a, b) => a - b);
}
