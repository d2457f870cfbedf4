/** Questions that do not block: the work goes on, the answer comes as a message, and a run does not end while one is open. */
import type { SettledQuestion, Settlement } from "../activities/contract/questions.ts";
import type { ToolFacts } from "../activities/contract/calls.ts";
import type { QuestionFacts } from "../activities/contract/questions.ts";
import { toAnswerId, unanswered, type LaterQuestion, type OpenQuestion } from "./asking.ts";
import { accept } from "./inbox.ts";
import { limitReached } from "./loop-policy.ts";
import { perform } from "./proxies.ts";
import { interruptible, optionsOf, showDetails, storeArrived, type Run } from "./run.ts";
import { restForAnswers } from "./waits.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";

const openLater = ({ state }: Pick<Run, "state">): LaterQuestion[] =>
  state.later.filter(({ settlement }) => settlement === undefined);

/** All questions that an answer may be for. */
export const allOpen = (run: Pick<Run, "state" | "asking">): OpenQuestion[] => [
  ...unanswered(run.asking),
  ...openLater(run),
];

/** The question is open, and its call has its result. */
export function askedForLater(
  run: Run,
  {
    question,
    facts,
    step,
    index,
  }: { question: QuestionFacts; facts: ToolFacts; step: number; index: number },
): SettledQuestion {
  run.state.later.push({ ...question, step, index, askedAtMs: Date.now(), settlement: undefined });
  showDetails(run);
  return { kind: "result", facts };
}

/** Puts an answer into the queue, once: its id is the question's. */
export function tellAnswer(run: Run, { id, text }: OpenQuestion, settlement: Settlement): void {
  const answerText =
    settlement.how === "answered" ? settlement.text : "The person does not want to answer this.";
  const about = text === "" ? "" : ` (${text})`;
  const by = "by" in settlement && settlement.by !== undefined ? { by: settlement.by } : {};
  const item = {
    id: toAnswerId(id),
    parts: [{ type: "text" as const, text: `Answer to your question ${id}${about}: ${answerText}` }],
    queuedAt: new Date().toISOString(),
    ...by,
  };
  if (!accept(run.state.inbox, item)) return;
  if (run.opened) storeArrived(run).catch(() => undefined);
}

/** At a step boundary: stores how such questions ended since the last one, and uses the defaults whose time has come. */
export async function settleLater(run: Run): Promise<void> {
  const { state } = run;
  for (const question of state.later) {
    const { expiresInMs, askedAtMs } = question;
    const isExpired = expiresInMs !== undefined && askedAtMs + expiresInMs <= Date.now();
    if (question.settlement !== undefined || !isExpired) continue;
    question.settlement = { how: "defaulted", why: "expired" };
    const told = {
      how: "answered",
      text: `${question.default ?? ""} (no one answered in time: this is your default)`,
    };
    tellAnswer(run, question, told as Settlement);
  }
  const withdrawn: string[] = [];
  for (const question of state.later) {
    const { settlement, step, index, id } = question;
    if (settlement === undefined) continue;
    const summary = `step ${state.step} · ${id} ${settlement.how}`;
    await perform("settleQuestion", optionsOf(run), summary, { step, index, id, settlement });
    state.later = state.later.filter((other) => other !== question);
    if (settlement.how === "withdrawn") withdrawn.push(id);
  }
  if (withdrawn.length === 0) return;
  const text = `Not answered, since the person wrote a message instead: ${withdrawn.join(", ")}.`;
  state.note = {
    kind: "notice",
    text: [state.note?.text ?? "", text].filter((part) => part !== "").join("\n"),
  };
}

/** When nothing else is left to do: waits for an answer. @returns whether the session goes on with one, or with a message */
export async function waitsForAnswers(run: Run, policy: RunPolicy): Promise<boolean> {
  const { state } = run;
  const open = openLater(run);
  if (open.length === 0 || limitReached(state, policy) !== undefined) return false;
  const ends = open.flatMap(({ expiresInMs, askedAtMs }) =>
    expiresInMs === undefined ? [] : [askedAtMs + expiresInMs],
  );
  await perform("markWaiting", optionsOf(run), `step ${state.step} · waits for an answer`, {
    step: state.step,
  });
  const end = await interruptible(run, () =>
    restForAnswers(run, ends.length === 0 ? undefined : Math.min(...ends)),
  );
  // Whoever wakes it wants no answer to be waited for: the run's end withdraws the questions.
  return end !== "woken";
}
