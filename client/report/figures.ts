/** The report's figures by step: how full the window was at each request, and what each step cost. */
import { tokens, dollars } from "../../activities/text/format.ts";
import { html, type Html } from "./html.ts";

type PlotPoint = Pick<StepCost, "step" | "input" | "cached">;

export interface PlotRound {
  readonly round: number;
  readonly step: number;
  readonly status: string;
}

const WIDTH = 900;
const HEIGHT = 220;
const LEFT = 52;
const BOTTOM = 24;
const TOP = 10;

/** @param contextWindow of the model; the scale ends there or at the largest request */
export function contextPlot(
  points: readonly PlotPoint[],
  rounds: readonly PlotRound[],
  contextWindow: number,
  triggerTokens: number,
): Html {
  if (points.length === 0) return html`<p class="faint">No request was billed.</p>`;
  const first = Math.min(...points.map((point) => point.step));
  const last = Math.max(first + 1, ...points.map((point) => point.step));
  const largest = Math.max(...points.map((point) => point.input));
  // Scaling to a barely used window would flatten the curve.
  const top = Math.max(largest * 1.15, Math.min(contextWindow, triggerTokens * 1.1));
  const x = (step: number) => round1(LEFT + ((step - first) / (last - first)) * (WIDTH - LEFT - 8));
  const y = (count: number) => round1(HEIGHT - BOTTOM - (count / top) * (HEIGHT - BOTTOM - TOP));
  const line = (pick: (point: PlotPoint) => number) =>
    points.map((point) => `${x(point.step)},${y(pick(point))}`).join(" ");
  const floor = y(0);
  const area = `${x(points[0]?.step ?? first)},${floor} ${line((point) => point.cached)} ${x(points.at(-1)?.step ?? last)},${floor}`;
  const scale = [0, 0.25, 0.5, 0.75, 1].map((share) => share * top);
  const compactions = rounds.filter((round) => round.status === "compacted");
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Context by step">
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Tokens of each request by step">
      ${scale.map(
        (count) =>
          html`<line class="grid" x1="${LEFT}" x2="${WIDTH}" y1="${y(count)}" y2="${y(count)}" /><text
              x="${LEFT - 6}"
              y="${y(count) + 4}"
              text-anchor="end"
              >${tokens(count)}</text
            >`,
      )}
      ${compactions.map(
        ({ round, step }) =>
          html`<line class="round" x1="${x(step)}" x2="${x(step)}" y1="${TOP}" y2="${floor}"
            ><title>round ${round}, before step ${step}</title></line
          >`,
      )}
      ${
        triggerTokens <= top
          ? html`<line
              class="trigger"
              x1="${LEFT}"
              x2="${WIDTH}"
              y1="${y(triggerTokens)}"
              y2="${y(triggerTokens)}"
            />`
          : html``
      }
      <polygon class="cached" points="${area}" />
      <polyline class="input" points="${line((point) => point.input)}" />
      <text x="${LEFT}" y="${HEIGHT - 6}">step ${first}</text>
      <text x="${WIDTH - 8}" y="${HEIGHT - 6}" text-anchor="end">step ${last}</text>
    </svg>
  </div>`;
}

function round1(value: number): number {
  return Math.round(value * 10) / 10;
}

export interface StepCost {
  readonly step: number;
  /** Tokens of the request as billed, and how many of them the provider had cached. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly costUsd: number | null;
}

/** The cost of each step, as bars that a screen reader reads as a table. Empty if no price is known. */
export function costsPart(steps: readonly StepCost[]): Html {
  const most = Math.max(0, ...steps.map(({ costUsd }) => costUsd ?? 0));
  if (most === 0) return html``;
  return html`<details class="costs">
    <summary>Cost by step</summary>
    <div class="scroll" tabindex="0" role="region" aria-label="Cost by step">
      <table>
        <thead>
          <tr>
            ${["step", "tokens in", "cached", "out", "cost", ""].map((head) => html`<th scope="col">${head}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${steps.map(
            ({ step, input, cached, output, costUsd }) =>
              html`<tr>
                <td>${step}</td>
                <td>${tokens(input)}</td>
                <td>${tokens(cached)}</td>
                <td>${tokens(output)}</td>
                <td>${costUsd === null ? "–" : dollars(costUsd)}</td>
                <td class="bar">
                  <span style="width: ${Math.round((100 * (costUsd ?? 0)) / most)}%"></span>
                </td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </details>`;
}
