/** Signals, updates and queries of a run: each a line onto the state. All synchronous; set before anything is awaited. */
import { ApplicationFailure, setHandler, uuid4, workflowInfo } from "@temporalio/workflow";
import { cleanText } from "../activities/contract/clean-text.ts";
import { isEmptyMessage } from "../activities/contract/guidance-limits.ts";
import { cutChars } from "../activities/contract/cut-text.ts";
import { createUnnamedIds, idOf, itemsOf, partsOf } from "../activities/contract/guidance-items.ts";
import { takeMessages } from "./guidance-jobs.ts";
import { accept, firstOf, refusal, waiting } from "./inbox.ts";
import {
  compactSignal,
  guidanceSignal,
  interruptSignal,
  queueQuery,
  sendGuidanceUpdate,
  statusQuery,
  undoCompactionSignal,
  type CompactRequest,
} from "./messages.ts";
import { sessionView } from "./presentation.ts";
import { remarkOn } from "./undecodable-arguments.ts";
import { interrupt, show, type Run } from "./actions.ts";

const SHOWN_EACH = 20;
const SHOWN_EVERY = 100;
/** Of what a person wants a summary to keep in view. */
const MAX_FOCUS_CHARS = 2_000;

export function setHandlers(run: Run): void {
  const { state } = run;
  const { firstExecutionRunId, runStartTime } = workflowInfo();
  const unnamed = createUnnamedIds(`${firstExecutionRunId} ${runStartTime.getTime()}`);
  const take = (message: unknown): boolean => {
    const parts = partsOf(message);
    // The Web UI sends whatever was typed: a malformed message is shown, and never fails the workflow's task.
    if (!parts || isEmptyMessage(parts)) {
      state.remark = 'A guidance signal was ignored: send {"text": "…"} or a plain string.';
      show(run);
      return false;
    }
    const queuedAt = new Date().toISOString();
    const items = itemsOf(idOf(message) ?? unnamed(parts), parts, queuedAt);
    const taken = items.filter((item) => accept(state.inbox, item)).length > 0;
    // A person's word starts the count of repeated calls anew.
    if (taken) {
      state.recentCalls = [];
      state.nudged = false;
    }
    // The details show the first few that wait and how many: of a flood not each one, which would cost more than the rest.
    if (waiting(state.inbox) <= SHOWN_EACH || waiting(state.inbox) % SHOWN_EVERY === 0) show(run);
    return taken;
  };

  takeMessages((message) => void take(message));
  remarkOn((text) => {
    state.remark = text;
    show(run);
  });
  setHandler(guidanceSignal, (message) => void take(message), {
    description:
      'Say something to the agent; it reads it before its next step. `{"text": "use pnpm"}` or just `"use pnpm"`.',
  });
  setHandler(
    interruptSignal,
    (message) => {
      if (message !== undefined && message !== null && message !== "") take(message);
      interrupt(run);
    },
    {
      description:
        "Abort the step in flight and go on, with what waits in the queue. Takes an optional message, like `guidance`.",
    },
  );
  setHandler(
    compactSignal,
    (request) => {
      state.compactRequest = focusOf(request);
      show(run);
    },
    {
      description:
        'Summarise the conversation before the next step. Optional: `{"focus": "what to keep in view"}`.',
    },
  );
  setHandler(
    undoCompactionSignal,
    () => {
      // A burst of them is no reason to carry much.
      if (state.undoRequests.length < 10) state.undoRequests.push(uuid4());
      show(run);
    },
    {
      description:
        "Take the newest compaction round back before the next step: what it had replaced is in view again.",
    },
  );
  setHandler(
    sendGuidanceUpdate,
    (message) => {
      const queued = take(message);
      // A completed run that was told something while it closed goes on with it.
      const willRead = run.status === "active" || run.status === "completed";
      return { queued, position: waiting(state.inbox), ...(willRead ? {} : { waitsForNextRun: true }) };
    },
    {
      description:
        "Like `guidance`, with an answer: whether it was queued (a known id is not, twice) and at which position.",
      validator: (message) => {
        const reason = refusal(state.inbox, message);
        if (reason !== undefined) throw ApplicationFailure.nonRetryable(reason, "GuidanceRefused");
      },
    },
  );
  setHandler(statusQuery, () => sessionView(state, run.policy, run.status), {
    description: "Step, phase, context use, queue and tokens of this run.",
  });
  setHandler(queueQuery, () => firstOf(state.inbox), {
    description: "Messages that wait for the next step.",
  });
}

function focusOf(request: CompactRequest | string | undefined | null): CompactRequest {
  const focus = typeof request === "string" ? request : request?.focus;
  return typeof focus === "string" ? { focus: cutChars(cleanText(focus), MAX_FOCUS_CHARS) } : {};
}
