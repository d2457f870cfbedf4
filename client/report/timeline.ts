/** The conversation and the tool calls, step by step; failures are red and linked. */
import { stamp, firstString, harmlessLine } from "../console/format.ts";
import { dollars, tokens } from "../../activities/text/format.ts";
import { stepFacts, WHO, type TrajectoryStep } from "../sessions/transcript.ts";
import { callEnd } from "../view/describe-event.ts";
import { html, type Html } from "./html.ts";
import { markdownHtml } from "./markdown-html.ts";
import { z } from "zod";
import { cutChars } from "../../activities/text/cut.ts";

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
  const cost = step.metrics?.["cost_usd"];
  const facts = stepFacts(
    step,
    step.metrics !== undefined && `${tokens(step.metrics["prompt_tokens"] ?? 0)} tokens in`,
    cost !== undefined && dollars(cost),
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

/** Characters of one result shown in the page; the export has the whole result. */
const MAX_RESULT_CHARS = 6_000;

export interface CallEnd {
  readonly ms: number | undefined;
  readonly exitCode: number | null;
}

/** A picture embedded in the page. */
export interface Picture {
  readonly mediaType: string;
  readonly base64: string;
}

export interface ShownCall {
  readonly id: string;
  readonly name: string;
  readonly about: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly step: number;
  readonly end: ReturnType<typeof callEnd>;
  readonly hasFailed: boolean;
  readonly result: string;
  readonly pictures: readonly Picture[];
}

/** Key of the pictures of a person's message. */
export const pictureOwner = (sequence: unknown): string => `message ${String(sequence)}`;

export interface CallSources {
  readonly facts: ReadonlyMap<string, CallEnd>;
  /** Pictures by call, or by `pictureOwner`. */
  readonly pictures: ReadonlyMap<string, readonly Picture[]>;
}

/** A command with an exit code other than 0 has failed, as in `watch`. */
export function callsOfStep(step: TrajectoryStep, sources: CallSources): ShownCall[] {
  return (step.tool_calls ?? []).map((call) => {
    const id = call.tool_call_id;
    const result = step.observation?.results.find((entry) => entry.source_call_id === id);
    const facts = sources.facts.get(id);
    const known = result?.extra["outcome"];
    const outcome = typeof known === "string" ? known : "no result";
    const exitCode = facts?.exitCode ?? null;
    const end = callEnd({ outcome, exitCode, durationMs: facts?.ms });
    return {
      id,
      name: call.function_name,
      about: firstString(call.arguments),
      input: call.arguments,
      step: Number(step.extra["step"]),
      end,
      hasFailed: end.tone === "bad" || outcome === "unknown",
      result: result?.content ?? "",
      pictures: sources.pictures.get(id) ?? [],
    };
  });
}

const anchorOf = ({ id }: ShownCall) => `call-${id.replaceAll(/[^\w-]/g, "_")}`;

/** @param next the failure after this one */
function callPart(call: ShownCall, next: ShownCall | undefined): Html {
  const todos = call.name === "todo" ? todoItems(call.input) : undefined;
  const { mark, tone, facts } = call.end;
  const interrupted = tone === "warn" ? "interrupted" : "";
  const className = call.hasFailed ? "failed" : interrupted;
  const isOpen = call.hasFailed || call.pictures.length > 0 || todos !== undefined;
  const title = html`<summary>
    <span class="mark">${mark}</span> <b>${call.name}</b>
    <code>${harmlessLine(todos === undefined ? call.about : todosDone(todos), 120)}</code>
    <span class="facts">${facts}</span>
  </summary>`;
  const body = html`${todos === undefined ? inputPart(call) : todoList(todos)}
  ${todos !== undefined || call.result === "" ? html`` : html`<pre tabindex="0">${bounded(call.result)}</pre>`}
  ${call.pictures.map(({ mediaType, base64 }) => html`<img alt="${call.about}" src="data:${mediaType};base64,${base64}" />`)}
  ${next === undefined || !call.hasFailed ? html`` : html`<a class="next" href="#${anchorOf(next)}">next failure: step ${next.step}, ${next.name}</a>`}`;
  return isOpen
    ? html`<details class="call ${className}" id="${anchorOf(call)}" open>${title} ${body}</details>`
    : html`<details class="call ${className}" id="${anchorOf(call)}">${title} ${body}</details>`;
}

/** A list of links to failures; nothing if there are none. */
export function failuresPart(failures: readonly ShownCall[]): Html {
  if (failures.length === 0) return html``;
  return html`<section class="failures" aria-labelledby="failures">
    <h2 id="failures">${failures.length === 1 ? "One call failed" : `${failures.length} calls failed`}</h2>
    <ol>
      ${failures.map(
        (call) =>
          html`<li>
            <a href="#${anchorOf(call)}"
              >step ${call.step}: ${call.name} <code>${harmlessLine(call.about, 80)}</code></a
            >
            ${call.end.facts}
          </li>`,
      )}
    </ol>
  </section>`;
}

function inputPart({ input, about }: ShownCall): Html {
  // A single text is shown as text: JSON would escape its line ends.
  const isText = Object.keys(input).length === 1 && Object.values(input)[0] === about;
  return html`<pre tabindex="0">${isText ? about : bounded(JSON.stringify(input, null, 2))}</pre>`;
}

const todoSchema = z.object({ items: z.array(z.object({ content: z.string(), status: z.string() })) });
type Todos = z.infer<typeof todoSchema>["items"];

/** @returns undefined if the input is not a valid list */
function todoItems(input: unknown): Todos | undefined {
  return todoSchema.safeParse(input).data?.items;
}

const BOX: Readonly<Record<string, string>> = { completed: "☑", in_progress: "◐", pending: "☐" };

const todosDone = (items: Todos) =>
  `${items.filter(({ status }) => status === "completed").length} of ${items.length} done`;

function todoList(items: Todos): Html {
  return html`<ul class="todo">
    ${items.map(
      ({ content, status }) =>
        html`<li class="${status === "in_progress" ? "now" : ""}">
          <span role="img" aria-label="${status.replace("_", " ")}">${BOX[status] ?? "☐"}</span> ${content}
        </li>`,
    )}
  </ul>`;
}

function bounded(text: string): string {
  if (text.length <= MAX_RESULT_CHARS) return text;
  return `${cutChars(text, MAX_RESULT_CHARS)}\n… ${text.length - MAX_RESULT_CHARS} more characters: longhaul export shows them`;
}
