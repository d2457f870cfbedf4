/** A session as one self-contained page: figures, the window's use, the timeline, the change. Pure. */
import type { SessionRow } from "../../activities/store/reading.ts";
import { doubtText } from "../console/doubt-text.ts";
import { dollars, duration, percent, stamp, tokens, present } from "../console/format.ts";
import type { TrajectoryStep } from "../sessions/transcript.ts";
import { callsOfStep, pictureOwner, failuresPart, type CallSources } from "./calls.ts";
import { changesPart } from "./changes.ts";
import { contextPlot, type PlotRound } from "./context-plot.ts";
import { costsPart, type StepCost } from "./costs.ts";
import { html, type Html } from "./html.ts";
import { markdownHtml } from "./markdown-html.ts";
import { STYLE } from "./style.ts";
import { timeline } from "./timeline.ts";

export interface ReportData {
  readonly session: SessionRow;
  readonly model: string;
  /** Trace of the session's newest run, if its workers send traces. */
  readonly traceId: string | null;
  readonly steps: readonly TrajectoryStep[];
  readonly rounds: readonly (PlotRound & {
    readonly trigger: string;
    readonly strategy: string;
    readonly tokensBefore: number;
    readonly tokensAfter: number;
  })[];
  /** Tokens over all model calls; `costUsd` null if the price is not known. */
  readonly usage: {
    readonly calls: number;
    readonly input: number;
    readonly cached: number;
    readonly output: number;
    readonly costUsd: number | null;
    /** The estimated part of the cost, for requests without reported usage. */
    readonly estimatedUsd: number;
  };
  /** The provider's token counts contradict the session's size. */
  readonly usageDoubtful: boolean;
  readonly windowTokens: number;
  readonly triggerTokens: number;
  readonly calls: CallSources;
  readonly costs: readonly StepCost[];
  /** Patch against the initial files; empty if nothing was saved. */
  readonly patch: string;
  readonly madeAt: Date;
}

const SECTIONS = ["Context", "Changes", "Timeline"] as const;

/** The complete HTML file. Whatever the session's texts contain, it fetches and runs nothing. */
export function reportPage(data: ReportData): string {
  const { session } = data;
  const steps = data.steps.map((step) => ({
    step,
    calls: callsOfStep(step, data.calls),
    pictures: data.calls.pictures.get(pictureOwner(step.extra["sequence"])) ?? [],
  }));
  const failures = steps.flatMap(({ calls }) => calls).filter(({ hasFailed }) => hasFailed);
  const page = html`<html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta
        http-equiv="Content-Security-Policy"
        content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"
      />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>Longhaul · ${session.id}</title>
      <style>
        ${STYLE}
      </style>
    </head>
    <body>
      <header class="page">
        <h1>${session.id}</h1>
        <p class="task">${session.task}</p>
        <nav aria-label="Sections">
          ${failures.length === 0 ? html`` : html`<a class="red" href="#failures">Failures (${failures.length})</a>`}
          ${SECTIONS.map((name) => html`<a href="#${name.toLowerCase()}">${name}</a>`)}
        </nav>
      </header>
      <main>
        <dl>
          ${figures(data).map(
            ([name, value]) =>
              html`<div>
                <dt>${name}</dt>
                <dd>${value}</dd>
              </div>`,
          )}
        </dl>
        ${endPart(session)} ${failuresPart(failures)}
        <h2 id="context">Context</h2>
        ${contextPlot(data.costs, data.rounds, data.windowTokens, data.triggerTokens)}
        <p class="faint">
          Tokens of each request; the filled part came from the provider's cache. Dashed line: where
          compaction starts (${tokens(data.triggerTokens)} of ${tokens(data.windowTokens)}). Vertical lines:
          compaction rounds.
        </p>
        ${roundsPart(data.rounds)} ${costsPart(data.costs)}
        <h2 id="changes">Changes</h2>
        ${changesPart(data.patch)}
        <h2 id="timeline">Timeline</h2>
        ${timeline(steps, failures)}
      </main>
      <footer>Made ${stamp(data.madeAt, "UTC")} by longhaul report ${session.id}</footer>
    </body>
  </html>`;
  return `<!doctype html>\n${page.text}\n`;
}

function figures({ session, usage, ...data }: ReportData) {
  const ended = session.endedAt ?? session.updatedAt;
  return present<[name: string, value: string]>(
    ["status", session.status],
    ["model", data.model],
    ["started", stamp(session.createdAt, "UTC")],
    ["took", duration(ended.getTime() - session.createdAt.getTime())],
    ["steps", String(Math.max(0, ...data.costs.map(({ step }) => step)))],
    ["compaction rounds", String(data.rounds.filter((round) => round.status === "compacted").length)],
    [
      "tokens in",
      `${tokens(usage.input)}${usage.cached > 0 ? ` (${percent(usage.cached, usage.input)} cached)` : ""}`,
    ],
    ["tokens out", tokens(usage.output)],
    ["model calls", String(usage.calls)],
    ["cost", usage.costUsd === null ? "price unknown" : dollars(usage.costUsd)],
    usage.estimatedUsd > 0 && ["estimated part", dollars(usage.estimatedUsd)],
    data.traceId !== null && ["trace", data.traceId],
    data.usageDoubtful && ["token counts", doubtText()],
  );
}

function endPart({ result, error }: SessionRow): Html {
  const words = errorText(error) ?? result;
  if (words === null) return html``;
  return error === null
    ? html`<section class="result markdown" aria-label="Result">${markdownHtml(words)}</section>`
    : html`<section class="result failed" aria-label="Failure">${words}</section>`;
}

function errorText(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("message" in error)) return undefined;
  return String(error.message);
}

function roundsPart(rounds: ReportData["rounds"]): Html {
  if (rounds.length === 0) return html``;
  const heads = ["round", "before step", "trigger", "strategy", "tokens", "outcome"];
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Compaction rounds">
    <table>
      <thead>
        <tr>
          ${heads.map((head) => html`<th scope="col">${head}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rounds.map(
          (round) =>
            html`<tr>
              <td>${round.round}</td>
              <td>${round.step}</td>
              <td>${round.trigger}</td>
              <td>${round.strategy}</td>
              <td>${tokens(round.tokensBefore)} → ${tokens(round.tokensAfter)}</td>
              <td>${round.status}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
