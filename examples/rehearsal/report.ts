/** The rehearsal's reports on its own work: the summary of a compaction, the text at a step limit. Pure. */
import { PLAN } from "./flashcards/todo-list.ts";
import { firstLine, positionMark } from "./position.ts";
import type { ScriptStep } from "./script-step.ts";

/** A summary of the script up to `step`, in the requested sections. */
export function summaryAt(step: number, script: readonly ScriptStep[]): string {
  const done = script.slice(0, step);
  const last = done.findLast(({ calls }) => calls.length > 0);
  const plan = planAt(step, script);
  const bullets = (lines: readonly string[]) =>
    lines.length === 0 ? "None." : lines.map((line) => `- ${line}`).join("\n");
  return [
    "## Original Task",
    "As the user gave it. The rehearsal model plays its script: a flashcard application with SM-2, tests and a card generator.",
    "## Completed Work",
    `Done and committed: ${plan.done.join("; ") || "the first steps"}.`,
    "## Key Technical Decisions",
    bullets(done.flatMap(({ decision }) => decision ?? [])),
    "## Current State",
    `${positionMark(step, script.length)}. Last done: ${firstLine(last?.text ?? "nothing yet")}`,
    "## Pending Work",
    plan.open.length === 0 ? "None." : plan.open.map((text) => `- [ ] ${text}`).join("\n"),
    "## Errors & Resolutions",
    bullets(done.flatMap(({ resolved }) => resolved ?? [])),
  ].join("\n\n");
}

/** The answer when no more steps are allowed. */
export function wrapUpAt(step: number, script: readonly ScriptStep[]): string {
  const plan = planAt(step, script);
  return [
    `I stopped after ${step} of the rehearsal's ${script.length} steps.`,
    plan.done.length === 0 ? "No part of the plan is finished." : `Finished: ${plan.done.join("; ")}.`,
    plan.open.length === 0 ? "Nothing is open." : `Still open: ${plan.open.join("; ")}.`,
    "This is the rehearsal model, which plays a written script; a message to this session lets it continue.",
  ].join("\n\n");
}

/** The plan as the script's newest `todo` call up to `step` has it. */
function planAt(
  step: number,
  script: readonly ScriptStep[],
): { done: readonly string[]; open: readonly string[] } {
  const plans = script.slice(0, step).flatMap(({ calls }) => calls.filter((call) => call.name === "todo"));
  const input = plans.at(-1)?.input;
  const items =
    typeof input === "object" && Array.isArray(input["items"]) ? (input["items"] as unknown[]) : [];
  const done = items.filter((item) => (item as { status?: string }).status === "completed").length;
  return { done: PLAN.slice(0, done), open: PLAN.slice(done) };
}
