/** The cost of each step, as bars that a screen reader reads as a table. Pure. */
import { dollars, tokens } from "../console/format.ts";
import { html, type Html } from "./html.ts";

export interface StepCost {
  readonly step: number;
  /** Tokens of the request as billed, and how many of them the provider had cached. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly costUsd: number | null;
}

/** Empty if no price is known. */
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
