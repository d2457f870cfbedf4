/** The conversation and the calls, step by step. Pure. */
import { dollars, stamp, tokens, present } from "../console/format.ts";
import { WHO, type TrajectoryStep } from "../sessions/transcript.ts";
import { bounded, callPart, type Picture, type ShownCall } from "./calls.ts";
import { html, type Html } from "./html.ts";
import { markdownHtml } from "./markdown-html.ts";

export interface TimelineStep {
  readonly step: TrajectoryStep;
  readonly calls: readonly ShownCall[];
  readonly pictures: readonly Picture[];
}

/** @param failures all failed calls of the session, in order */
export function timeline(steps: readonly TimelineStep[], failures: readonly ShownCall[]): Html {
  const after = new Map(failures.map((call, at) => [call.id, failures[at + 1]]));
  return html`${steps.map((step) => stepPart(step, after))}`;
}

function stepPart(
  { step, calls, pictures }: TimelineStep,
  after: ReadonlyMap<string, ShownCall | undefined>,
): Html {
  const { kind, step: number, compactedRound } = step.extra;
  const cost = step.metrics?.["cost_usd"];
  const facts = present(
    Number(number) > 0 && `step ${String(number)}`,
    kind === "summary" && "summary",
    step.metrics && `${tokens(step.metrics["prompt_tokens"] ?? 0)} tokens in`,
    cost !== undefined && dollars(cost),
    typeof compactedRound === "number" && `in the summary of round ${compactedRound}`,
  );
  const at = new Date(step.timestamp);
  return html`<article class="${step.source}">
    <header>
      <b>${WHO[step.source]}</b> ${facts.map((fact) => `· ${fact}`).join(" ")} ·
      <time datetime="${step.timestamp}">${stamp(at, "UTC")}</time>
    </header>
    ${step.reasoning_content === undefined ? html`` : folded("reasoning", step.reasoning_content)}
    ${step.message === "" ? html`` : wordsPart(step)}
    ${pictures.map(
      ({ mediaType, base64 }, at) =>
        html`<img alt="attached picture ${at + 1}" src="data:${mediaType};base64,${base64}" />`,
    )}
    ${calls.map((call) => callPart(call, after.get(call.id)))}
  </article>`;
}

/** The agent's text is Markdown; a person's is shown as typed. */
function wordsPart({ message, extra, source }: TrajectoryStep): Html {
  if (extra["kind"] === "summary") return folded("summary", message);
  return source === "agent"
    ? html`<div class="markdown">${markdownHtml(message)}</div>`
    : html`<p class="words">${message}</p>`;
}

function folded(title: string, text: string): Html {
  return html`<details>
    <summary>${title}</summary>
    <pre tabindex="0">${bounded(text)}</pre>
  </details>`;
}
