/** Signals, updates and queries of a run, set before anything is awaited. All but answers are synchronous. */
import { ApplicationFailure, setHandler, uuid4, workflowInfo } from "@temporalio/workflow";
import { cleanText } from "../activities/text/clean.ts";
import {
  isEmptyMessage,
  senderOf,
  createUnnamedIds,
  idOf,
  toGuidanceItems,
  partsOf,
} from "../activities/contract/guidance.ts";
import { cutChars } from "../activities/text/cut.ts";
import { accept, isWaiting, MAX_WAITING, messageRefusal, oldestQueued, waiting, withdraw } from "./inbox.ts";
import { allOpen } from "./later-questions.ts";
import { answerRefusal, askAgain, takeAnswer, withdrawForMessage } from "./questions.ts";
import {
  answerQuestionUpdate,
  answerSignal,
  askAgainSignal,
  compactSignal,
  guidanceSignal,
  interruptSignal,
  queueQuery,
  sendGuidanceUpdate,
  statusQuery,
  undoCompactionSignal,
  wakeUpdate,
  withdrawMessageUpdate,
  type CompactRequest,
  type WithdrawnMessage,
} from "./messages.ts";
import { sessionView } from "./presentation.ts";
import { thisRun } from "./this-run.ts";
import { wake } from "./waits.ts";
import { interrupt, showDetails, storeArrived, type Run } from "./run.ts";

const SHOWN_EACH = 20;
const SHOWN_EVERY = 100;
/** Bounds what continue-as-new carries. */
const MAX_UNDO_REQUESTS = 10;
/** The longest text with which a person says what a summary should focus on. */
const MAX_FOCUS_CHARS = 2_000;

/** Chosen: as long as our own longest remark. */
const MAX_REMARK_CHARS = 500;

type Take = (message: unknown) => boolean;

export function setHandlers(run: Run): void {
  const take = createTake(run);
  Object.assign(thisRun(), {
    takeMessage: (message: unknown) => void take(message),
    showRemark: (text: string) => showRemark(run, text),
  });
  setMessageHandlers(run, take);
  setWithdrawHandler(run);
  setWakeHandler(run);
  setCompactionHandlers(run);
  setAnswerHandlers(run);
  setHandler(statusQuery, () => sessionView(run, allOpen(run)), {
    description: "Step, phase, context use, queue and tokens of this run.",
  });
  setHandler(queueQuery, () => oldestQueued(run.state.inbox, MAX_WAITING), {
    description: "Messages that wait for the next step.",
  });
}

function showRemark(run: Run, text: string): void {
  // A remark may quote a message, and all details share one payload.
  run.state.remark = cutChars(text, MAX_REMARK_CHARS);
  showDetails(run);
}

/** Puts messages in the queue. @returns whether a message was queued: a known id is not queued twice */
function createTake(run: Run): Take {
  const { state } = run;
  const { firstExecutionRunId, runStartTime } = workflowInfo();
  const unnamed = createUnnamedIds(`${firstExecutionRunId} ${runStartTime.getTime()}`);
  return (message) => {
    const parts = partsOf(message);
    // The Web UI sends whatever was typed: a malformed message is shown, and never fails the workflow task.
    if (!parts || isEmptyMessage(parts)) {
      showRemark(run, 'A guidance signal was ignored: send {"text": "…"} or a plain string.');
      return false;
    }
    const queuedAt = new Date().toISOString();
    const sender = senderOf(message);
    const items = toGuidanceItems(idOf(message) ?? unnamed(parts), parts, queuedAt, sender);
    const isAccepted = items.filter((item) => accept(state.inbox, item)).length > 0;
    // A message from the user restarts the count of repeated calls.
    if (isAccepted) {
      // If this fails, the next boundary tries it again. Before the session is open, there is none to store them in.
      if (run.opened) storeArrived(run).catch(() => undefined);
      withdrawForMessage(run);
      Object.assign(state.repetition, { calls: [], isWarned: false });
    }
    // The details show the first few waiting messages and their number; in a flood, updating them each time costs too much.
    if (waiting(state.inbox) <= SHOWN_EACH || waiting(state.inbox) % SHOWN_EVERY === 0) showDetails(run);
    return isAccepted;
  };
}

function setMessageHandlers(run: Run, take: Take): void {
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
        "Abort the step in flight and continue with the messages in the queue. Takes an optional message, like `guidance`.",
    },
  );
  setHandler(
    sendGuidanceUpdate,
    (message) => {
      const queued = take(message);
      // A completed run that got a message while it closed continues with it.
      const willRead = run.status === "active" || run.status === "waiting" || run.status === "completed";
      return { queued, position: waiting(run.state.inbox), waitsForNextRun: willRead ? undefined : true };
    },
    {
      description:
        "Like `guidance`, with an answer: whether the message was queued (a known id is not queued twice), and at which position.",
      validator: (message) => {
        const reason = messageRefusal(run.state.inbox, message);
        if (reason !== undefined) throw ApplicationFailure.nonRetryable(reason, "GuidanceRefused");
      },
    },
  );
}

function setWithdrawHandler(run: Run): void {
  const { inbox } = run.state;
  setHandler(
    withdrawMessageUpdate,
    ({ id }) => {
      withdraw(inbox, id);
      showDetails(run);
    },
    {
      description:
        'Take a message back that waits: `{"id": "…"}` as `queue` has it. Refused once the agent reads it.',
      // The argument may be anything; the Web UI can also send none.
      validator: (message: WithdrawnMessage | null | undefined) => {
        if (!isWaiting(inbox, message?.id))
          throw ApplicationFailure.nonRetryable(
            "This message is not waiting: the agent has it already, or there is none with this id.",
            "GuidanceRefused",
          );
      },
    },
  );
}

function setWakeHandler(run: Run): void {
  setHandler(wakeUpdate, () => void wake(run), {
    description: "End the wait that the model asked for, without a message. Refused if it does not wait.",
    validator: () => {
      if (run.wait === undefined)
        throw ApplicationFailure.nonRetryable("The session has no wait that could be ended.", "NoWait");
    },
  });
}

function setAnswerHandlers(run: Run): void {
  setHandler(
    answerSignal,
    async (message) => {
      const answer = await takeAnswer(run, message);
      if (answer.ok) showDetails(run);
      else showRemark(run, `An answer was not accepted: ${answer.reason}.`);
    },
    {
      description:
        'Answer a question: `{"question": "s1c0", "text": "…"}`, `{"option": 1}`, or just `"…"` if one is open. Allow or refuse a call: `{"action": "allow"}`, `"allow-always"`, `"deny"`.',
    },
  );
  setHandler(askAgainSignal, () => askAgain(run), {
    description: "Store the open questions again: Postgres was restored from an older copy and lacks them.",
  });
  setHandler(
    answerQuestionUpdate,
    async (message) => {
      const answer = await takeAnswer(run, message);
      if (!answer.ok) throw ApplicationFailure.nonRetryable(answer.reason, "AnswerRefused");
      showDetails(run);
      return { question: answer.id };
    },
    {
      description:
        "Like `answer`, with a reply: refused if the question is not open or does not allow that answer.",
      validator: (message) => {
        const reason = answerRefusal(run, message);
        if (reason !== undefined) throw ApplicationFailure.nonRetryable(reason, "AnswerRefused");
      },
    },
  );
}

function setCompactionHandlers(run: Run): void {
  const { state } = run;
  const { undoRequests } = state.compaction;
  setHandler(
    compactSignal,
    (request) => {
      state.compaction.request = focusOf(request);
      showDetails(run);
    },
    {
      description:
        'Summarise the conversation before the next step. Optional: `{"focus": "what to keep in view"}`.',
    },
  );
  setHandler(
    undoCompactionSignal,
    () => {
      if (undoRequests.length < MAX_UNDO_REQUESTS) undoRequests.push(uuid4());
      showDetails(run);
    },
    { description: "Undo the newest compaction before the next step: what it replaced is in view again." },
  );
}

function focusOf(request: CompactRequest | string | undefined | null): CompactRequest {
  const focus = typeof request === "string" ? request : request?.focus;
  return typeof focus === "string" ? { focus: cutChars(cleanText(focus), MAX_FOCUS_CHARS) } : {};
}
