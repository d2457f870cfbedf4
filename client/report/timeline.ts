/** What was said and done, step by step. Pure. */
import { cutChars } from "../../activities/contract/cut-text.ts";
import { firstString } from "../console/describe-call.ts";
import { duration, oneLine, tokens } from "../console/format.ts";
import type { TrajectoryStep } from "../sessions/trajectory.ts";
import { html, type Html } from "./html.ts";

/** Characters of one result in the page; the export has all of them. */
const MAX_RESULT_CHARS = 6_000;

const WHO = { user: "you", agent: "agent", system: "note" } as const;

/** @param callMs how long the call with an id took, where that is known */
export function timeline(steps: readonly TrajectoryStep[], callMs: ReadonlyMap<string, number>): Html {
  return html`${steps.map((step) => stepPart(step, callMs))}`;
}

function stepPart(step: TrajectoryStep, callMs: ReadonlyMap<string, number>): Html {
  const { kind, step: number, compactedRound } = step.extra;
  const facts = [
    WHO[step.source],
    `step ${String(number)}`,
    ...(kind === "summary" ? ["summary"] : []),
    ...(step.metrics ? [`${tokens(step.metrics["prompt_tokens"] ?? 0)} tokens in`] : []),
    ...(typeof compactedRound === "number" ? [`in the summary of round ${compactedRound}`] : []),
  ];
  return html`<article class="${step.source}">
    <header><time datetime="${step.timestamp}">${clock(step.timestamp)}</time> ${facts.join(" · ")}</header>
    ${step.reasoning_content === undefined ? html`` : folded("reasoning", step.reasoning_content)}
    ${step.message === "" ? html`` : wordsPart(step)}
    ${(step.tool_calls ?? []).map((call) => callPart(step, call, callMs.get(call.tool_call_id)))}
  </article>`;
}

function wordsPart({ message, extra }: TrajectoryStep): Html {
  return extra["kind"] === "summary" ? folded("summary", message) : html`<p class="words">${message}</p>`;
}

function callPart(
  step: TrajectoryStep,
  call: NonNullable<TrajectoryStep["tool_calls"]>[number],
  ms: number | undefined,
): Html {
  const result = step.observation?.results.find((each) => each.source_call_id === call.tool_call_id);
  const outcome = typeof result?.extra["outcome"] === "string" ? result.extra["outcome"] : "no result";
  const input = JSON.stringify(call.arguments, null, 2);
  return html`<details class="call ${outcome}">
    <summary>
      <b>${call.function_name}</b> <code>${oneLine(firstString(call.arguments), 120)}</code>
      <span>${outcome}${ms === undefined ? "" : ` · ${duration(ms)}`}</span>
    </summary>
    <pre>${input}</pre>
    <pre>${bounded(result?.content ?? "")}</pre>
  </details>`;
}

function folded(title: string, text: string): Html {
  return html`<details>
    <summary>${title}</summary>
    <pre>${bounded(text)}</pre>
  </details>`;
}

function bounded(text: string): string {
  if (text.length <= MAX_RESULT_CHARS) return text;
  return `${cutChars(text, MAX_RESULT_CHARS)}\n… ${text.length - MAX_RESULT_CHARS} more characters: longhaul export shows them`;
}

function clock(timestamp: string): string {
  return timestamp.slice(11, 19);
}
