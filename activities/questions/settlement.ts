/** How a question ended, in words for the model, for its row and for watchers. */
import { shorten } from "../text/cut.ts";
import type { ToolOutcome } from "../contract/message.ts";
import { wantsWords, type Settlement } from "../contract/questions.ts";
import type { EventData } from "../store/event.ts";
import type { QuestionRow, QuestionStatus } from "../store/questions.ts";

type Question = Pick<QuestionRow, "id" | "kind" | "defaultText">;

/** The call's result; undefined if a person allowed the call, which then runs and produces its own. */
export function resultFor(
  { kind, defaultText }: Question,
  end: Settlement,
): { readonly outcome: ToolOutcome; readonly text: string } | undefined {
  const isApproval = !wantsWords(kind);
  if (kind === "plan") return planResult(end);
  switch (end.how) {
    case "allowed":
      return undefined;
    case "answered":
      return { outcome: "completed", text: `The person answered: ${end.text}` };
    case "denied":
      return {
        outcome: "error",
        text: `A person did not allow this call, and it was not run.${end.text === undefined ? "" : ` They wrote: ${end.text}`}`,
      };
    case "declined":
      return isApproval
        ? { outcome: "error", text: "A person did not allow this call, and it was not run." }
        : {
            outcome: "completed",
            text: "The person does not want to answer this. This is not consent: continue without an answer, or take the careful way.",
          };
    case "defaulted":
      return {
        outcome: "completed",
        text: `${end.why === "expired" ? "No one answered in time" : "No one is asked in this session"}, so your default is used: ${defaultText ?? ""}\nNo person has confirmed it.`,
      };
    case "withdrawn":
      return { outcome: isApproval ? "error" : "completed", text: withdrawnText(isApproval, end.why) };
  }
}

/** Every outcome of a plan is a result: there is no call to run afterwards. */
function planResult(end: Settlement): { readonly outcome: ToolOutcome; readonly text: string } {
  const comment = "text" in end && end.text !== undefined ? end.text : undefined;
  if (end.how === "allowed")
    return {
      outcome: "completed",
      text: `The person approved the plan${comment === undefined ? "" : `, and wrote: ${comment}`}\nThe workspace can be written to now, and all tools are available. The sandbox was recreated: processes that were started are gone. Carry out the plan.`,
    };
  if (end.how === "denied" && comment !== undefined)
    return {
      outcome: "completed",
      text: `The person wants the plan changed: ${comment}\nNothing can be written yet. Show the new plan with exit_plan.`,
    };
  if (end.how === "withdrawn")
    return {
      outcome: "completed",
      text: `The plan is not approved: ${WITHDRAWN[end.why]}. Nothing can be written yet.`,
    };
  return {
    outcome: "completed",
    text: "The person did not approve the plan. Nothing can be written yet. If you do not see what to change, answer without calling tools.",
  };
}

const WITHDRAWN = {
  said: "the person wrote a message instead, which follows",
  unattended: "no one is asked in this session",
  "too-many": "too many questions are open at once; ask fewer in one step",
  stopped: "the run ends",
} as const;

function withdrawnText(isApproval: boolean, why: keyof typeof WITHDRAWN): string {
  const what = isApproval ? "Not allowed, and not run" : "Not answered";
  const then = why === "unattended" && !isApproval ? " Decide yourself, and say what you decided." : "";
  return `${what}: ${WITHDRAWN[why]}.${then}`;
}

/** What the question's row stores. */
export function toClosing(
  { defaultText }: Question,
  end: Settlement,
): { readonly status: Exclude<QuestionStatus, "open">; readonly answer?: string; readonly by?: string } {
  const by = "by" in end && end.by !== undefined ? { by: end.by } : {};
  switch (end.how) {
    case "answered":
      return { status: "answered", answer: end.text, ...by };
    case "allowed":
      return { status: "answered", answer: end.always ? "allow-always" : "allow", ...by };
    case "denied":
      return { status: "declined", answer: end.text, ...by };
    case "declined":
      return { status: "declined", ...by };
    case "defaulted":
      return { status: "defaulted", answer: defaultText ?? "" };
    case "withdrawn":
      return { status: "withdrawn" };
  }
}

const EXCERPT_CHARS = 300;

export function settledEvent(
  question: Question,
  end: Settlement,
):
  | { readonly type: "question:answered"; readonly data: EventData["question:answered"] }
  | { readonly type: "question:expired"; readonly data: EventData["question:expired"] }
  | { readonly type: "question:withdrawn"; readonly data: EventData["question:withdrawn"] } {
  const { id } = question;
  if (end.how === "withdrawn") return { type: "question:withdrawn", data: { id, reason: end.why } };
  if (end.how === "defaulted" && end.why === "expired")
    return { type: "question:expired", data: { id, default: question.defaultText ?? "" } };
  const { answer, by } = toClosing(question, end);
  const how = end.how === "allowed" && end.always ? "allowed-always" : end.how;
  const excerpt = end.how === "allowed" ? (end.text ?? "") : (answer ?? "");
  return {
    type: "question:answered",
    data: { id, how, by: by ?? null, excerpt: shorten(excerpt, EXCERPT_CHARS) },
  };
}
