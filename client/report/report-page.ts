/** A session as one self-contained page: figures, the window's use, the timeline, the change. */
import type { SessionEvent } from "../../activities/store/event.ts";
import type { FollowRound } from "../../activities/store/follows.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { doubtText } from "../console/doubt-text.ts";
import { stamp, present, shellWord } from "../console/format.ts";
import { dollars, duration, percent, tokens, plural } from "../../activities/text/format.ts";
import type { TrajectoryStep } from "../sessions/transcript.ts";
import { callsOfStep, pictureOwner, failuresPart, type CallSources, timeline } from "./timeline.ts";
import { contextPlot, type PlotRound, costsPart, type StepCost } from "./figures.ts";
import { html, Html } from "./html.ts";
import { markdownHtml } from "./markdown-html.ts";
import { cutChars } from "../../activities/text/cut.ts";
import { describeEvent } from "../view/describe-event.ts";
import { followLines, followRoundText, type FollowStatus } from "../view/followed-words.ts";
import { verifiedText } from "../view/verified-words.ts";
import { patchFiles, type PatchFile } from "../workspace/workspace-diff.ts";

export interface ReportData {
  readonly session: SessionRow;
  readonly model: string;
  /** Trace of the session's newest run, if its workers send traces. */
  readonly traceId: string | null;
  readonly steps: readonly TrajectoryStep[];
  readonly rounds: readonly PlotRound[];
  /** Its compactions, what its verifications came to, and its end unless it goes on. */
  readonly events: readonly SessionEvent[];
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
  readonly contextWindow: number;
  readonly triggerTokens: number;
  readonly calls: CallSources;
  readonly costs: readonly StepCost[];
  /** Patch against the initial files; empty if nothing was saved. */
  readonly patch: string;
  /** Its pull request, if it is or was followed, and each round of that. */
  readonly follow: FollowStatus | null;
  readonly followRounds: readonly FollowRound[];
  readonly madeAt: Date;
}

const PULL_REQUEST = "Pull request";
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
        ${sectionLinks(data, failures.length)}
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
        ${endPart(session)} ${failuresPart(failures)} ${verificationPart(data.events)} ${followPart(data)}
        <h2 id="context">Context</h2>
        ${contextPlot(data.costs, data.rounds, data.contextWindow, data.triggerTokens)}
        <p class="faint">
          Tokens of each request; the filled part came from the provider's cache. Dashed line: where
          compaction starts (${tokens(data.triggerTokens)} of ${tokens(data.contextWindow)}). Vertical lines:
          compaction rounds.
        </p>
        ${compactionsPart(data.events)} ${costsPart(data.costs)}
        <h2 id="changes">Changes</h2>
        ${changesPart(data.patch)}
        <h2 id="timeline">Timeline</h2>
        ${timeline(steps, failures)}
      </main>
      <footer>Made ${stamp(data.madeAt, "UTC")} by longhaul report ${shellWord(session.id)}</footer>
    </body>
  </html>`;
  return `<!doctype html>\n${page.text}\n`;
}

function sectionLinks({ events, follow }: ReportData, failures: number): Html {
  const isVerified = events.some(({ type }) => type === "verify:ended");
  const sections = present(isVerified && "Verification", follow !== null && PULL_REQUEST, ...SECTIONS);
  return html`<nav aria-label="Sections">
    ${failures === 0 ? html`` : html`<a class="red" href="#failures">Failures (${failures})</a>`}
    ${sections.map((name) => html`<a href="#${anchorOf(name)}">${name}</a>`)}
  </nav>`;
}

const anchorOf = (name: string): string => name.toLowerCase().replace(" ", "-");

function figures({ session, usage, ...data }: ReportData) {
  const ended = session.endedAt ?? session.updatedAt;
  const [end] = data.events
    .filter(({ type }) => type === "session:ended")
    .flatMap((event) => describeEvent(event));
  return present<[name: string, value: string]>(
    ["status", end?.text ?? session.status],
    session.verified !== null && ["verified", verifiedText(session.verified)],
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
  const text = errorText(error) ?? result;
  if (text === null) return html``;
  return error === null
    ? html`<section class="result markdown" aria-label="Result">${markdownHtml(text)}</section>`
    : html`<section class="result failed" aria-label="Failure">${text}</section>`;
}

function errorText(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("message" in error)) return undefined;
  return String(error.message);
}

/** What the terminal and the page say of each compaction. */
function compactionsPart(events: readonly SessionEvent[]): Html {
  const sentences = events
    .filter(({ type }) => type === "context:compressed")
    .flatMap((event) => describeEvent(event).map((sentence) => ({ ...sentence, step: event.step })));
  if (sentences.length === 0) return html``;
  return html`<ul aria-label="Compactions">
    ${sentences.map(({ mark = "", text, step }) => html`<li>${mark} ${text}, before step ${step}</li>`)}
  </ul>`;
}

/** What each command of `verify` came to, look by look. */
function verificationPart(events: readonly SessionEvent[]): Html {
  const sentences = events
    .filter(({ type }) => type === "verify:ended")
    .flatMap((event) => describeEvent(event).map((sentence) => ({ ...sentence, step: event.step })));
  if (sentences.length === 0) return html``;
  return html`<h2 id="verification">Verification</h2>
    <ul class="looks">
      ${sentences.map(
        ({ tone, mark = "", text, step, detail = "" }) =>
          html`<li>
            <span class="${tone === "good" ? "add" : "del"}">${mark}</span> ${text}, after step ${step}
            ${detail === "" ? html`` : outputPart(detail)}
          </li>`,
      )}
    </ul>`;
}

/** What became of the pull request, and what each round of following it was for. */
function followPart({ session, follow, followRounds, madeAt }: ReportData): Html {
  if (follow === null) return html``;
  return html`<h2 id="${anchorOf(PULL_REQUEST)}">${PULL_REQUEST}</h2>
    <p>${/^https?:/.test(follow.url) ? html`<a href="${follow.url}">${follow.url}</a>` : follow.url}</p>
    <ul>
      ${followLines(session.id, follow, madeAt).map((line) => html`<li>${line}</li>`)}
    </ul>
    ${
      followRounds.length === 0
        ? html``
        : html`<ol aria-label="Rounds">
            ${followRounds.map((round) => html`<li>${followRoundText(round)}</li>`)}
          </ol>`
    }`;
}

const outputPart = (output: string): Html =>
  html`<details>
    <summary>output</summary>
    <pre tabindex="0">${output}</pre>
  </details>`;

/** Characters of the change shown in the page; `longhaul diff` shows all of it. */
const MAX_PATCH_CHARS = 400_000;

/** The change file by file, each with its line counts and its patch. */
function changesPart(patch: string): Html {
  if (patch === "") return html`<p class="faint">No change to a file was saved.</p>`;
  const shownPatch = cutChars(patch, MAX_PATCH_CHARS);
  const files = patchFiles(shownPatch);
  const sum = (pick: (file: PatchFile) => number | null) =>
    files.reduce((total, file) => total + (pick(file) ?? 0), 0);
  return html`<p>
      ${plural(files.length, "file")},
      ${lineCounts(
        sum(({ added }) => added),
        sum(({ removed }) => removed),
      )}${patch.length > shownPatch.length ? ", cut here: longhaul diff shows all of it" : ""}
    </p>
    ${files.map(
      ({ path, added, removed, text }) =>
        html`<details class="file">
          <summary>
            <code>${path}</code>
            ${added === null || removed === null ? html`<span class="facts">binary</span>` : lineCounts(added, removed)}
          </summary>
          <pre tabindex="0">${text.split("\n").map(diffLine)}</pre>
        </details>`,
    )}`;
}

function lineCounts(added: number, removed: number): Html {
  return html`<span class="counts"
    ><span class="add" aria-label="${plural(added, "line")} added">+${added}</span>
    <span class="del" aria-label="${plural(removed, "line")} removed">−${removed}</span></span
  >`;
}

const LINE_CLASSES: Readonly<Record<string, string>> = { "+": "add", "-": "del", "@": "at" };

function diffLine(line: string): Html {
  const className = LINE_CLASSES[line.charAt(0)];
  return className === undefined ? html`${line}` : html`<span class="${className}">${line}</span>`;
}

/** For paper, phones and dark mode. */
const STYLE = new Html(`
:root { color-scheme: light dark; --ink: #1b1f24; --faint: #68737d; --line: #d8dee4; --paper: #fff; --soft: #f6f8fa; --blue: #1f6feb; --green: #1a7f37; --red: #cf222e; --amber: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #8b949e; --line: #30363d; --paper: #0d1117; --soft: #161b22; --blue: #58a6ff; --green: #3fb950; --red: #f85149; --amber: #d29922; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
.task { white-space: pre-wrap; } .faint, footer, article > header, dt { color: var(--faint); font-size: .85rem; }
dl { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; } dl div { min-width: 6rem; } dd { margin: 0; font-weight: 600; }
.result { background: var(--soft); border-left: 3px solid var(--green); padding: .5rem 1rem; overflow-wrap: anywhere; } .result.failed { border-color: var(--red); white-space: pre-wrap; }
svg { width: 100%; min-width: 36rem; height: auto; } svg text { fill: var(--faint); font-size: 11px; }
.grid { stroke: var(--line); } .trigger { stroke: var(--amber); stroke-dasharray: 6 4; } .round { stroke: var(--faint); opacity: .5; }
.input { fill: none; stroke: var(--blue); stroke-width: 2; } .cached { fill: var(--blue); opacity: .18; }
.scroll { overflow-x: auto; } .scroll table { white-space: nowrap; }
table { border-collapse: collapse; font-size: .85rem; } td, th { text-align: left; padding: .15rem .75rem .15rem 0; border-bottom: 1px solid var(--line); }
article { border-left: 3px solid var(--line); padding: .1rem 0 .1rem .75rem; margin: .5rem 0; } article.user { border-color: var(--blue); } article.system { border-color: var(--amber); }
.words { white-space: pre-wrap; margin: .2rem 0; } details { margin: .15rem 0; } summary { cursor: pointer; overflow-wrap: anywhere; }
.facts { color: var(--faint); font-size: .85rem; } .mark { color: var(--green); } .failed > summary .mark, .failed > summary .facts { color: var(--red); font-weight: 600; } .interrupted > summary .mark { color: var(--amber); }
.call:target, .call:target > summary { outline: 2px solid var(--blue); outline-offset: 2px; } .next { font-size: .85rem; }
.failures { border-left: 3px solid var(--red); padding-left: 1rem; } .failures h2 { color: var(--red); border: 0; margin-top: 1rem; } .failures li { overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; } a { color: var(--blue); } a.red { color: var(--red); font-weight: 600; }
:focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }
.markdown { overflow-wrap: anywhere; } .markdown p { margin: .4rem 0; } .markdown .heading { font-weight: 700; } .markdown ul, .markdown ol { margin: .3rem 0; padding-left: 1.4rem; } .markdown li p { margin: 0; } .markdown li.check { list-style: none; margin-left: -1.2rem; }
code { background: var(--soft); padding: 0 .2em; border-radius: 3px; font-size: .9em; overflow-wrap: anywhere; } blockquote { border-left: 3px solid var(--line); margin: .4rem 0; padding-left: .8rem; color: var(--faint); }
.todo { list-style: none; padding-left: .5rem; margin: .2rem 0; } .todo .now { font-weight: 600; }
img { display: block; max-width: 100%; height: auto; max-height: 30rem; margin: .4rem 0; border: 1px solid var(--line); }
.bar { min-width: 6rem; } .bar span { display: block; height: .6rem; background: var(--blue); opacity: .6; }
.looks { list-style: none; padding-left: 0; }
.counts { white-space: nowrap; font-size: .85rem; }
pre { background: var(--soft); padding: .5rem; overflow: auto; max-height: 30rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; margin: .25rem 0; }
.add { color: var(--green); } .del { color: var(--red); } .at { color: var(--blue); }
footer { margin: 3rem 0 1rem; overflow-wrap: anywhere; }
@media print { details > pre { max-height: none; } nav { display: none; } }
`);
