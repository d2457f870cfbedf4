/** What long tasks cost under our context policy and under others', replayed without any service. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { prefixWith } from "../../../activities/context/request.ts";
import { DEFAULT_IMAGE } from "../../../activities/config/sandbox-settings.ts";
import { systemPrompt } from "../../../activities/config/system-prompt.ts";
import { toolRegistry } from "../../../activities/tools/index.ts";
import { pruneFirstFor } from "../../../activities/config/budget.ts";
import { compareFirst, type Policy, replayOurs } from "../policies/ours.ts";
import { Replay, type Outcome } from "../policies/replay.ts";
import { readRecorded } from "../policies/recorded.ts";
import type { Trajectory } from "../policies/trajectory.ts";
import { type Figure, ratioAtMost } from "../table.ts";

const WINDOWS = [
  16_000, 20_000, 24_000, 28_000, 32_000, 48_000, 64_000, 128_000, 200_000, 400_000, 1_000_000,
];
const fixture = (name: string) => fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url));

export interface PolicyMaterial {
  /** What `longhaul export` wrote; undefined = the recorded session of the fixtures. */
  readonly file?: string | undefined;
}

const POLICIES: Readonly<Record<string, Policy>> = {
  ours: {},
  "ours, no trigger for returns": { returnTrigger: 0.8 },
  "ours, the summary first": { prune: "never" },
  "ours, prune always": { prune: "always" },
  "ours, reactive-overflow": { strategy: "reactive-overflow" },
  "ours, proactive-threshold": { strategy: "proactive-threshold" },
  "reference: only on overflow": { prune: "never", onlyOnOverflow: true },
};

interface Row {
  readonly name: string;
  readonly outcome: Outcome;
}

/** @throws Error if the file is not an exported session */
export async function measurePolicies({ file }: PolicyMaterial): Promise<Figure[]> {
  const trajectory = readRecorded(file ?? fixture("trajectory.json.gz"));
  const figures: Figure[] = [];
  for (const contextWindow of WINDOWS)
    figures.push(
      ...(await inWindow(contextWindow, trajectory, file === undefined ? others(contextWindow) : [])),
    );
  return figures;
}

/** Other agents' policies over the recorded session, as they were measured. */
function others(contextWindow: number): Row[] {
  const { outcomes } = JSON.parse(readFileSync(fixture("other-policies.json"), "utf8")) as {
    readonly outcomes: readonly (Outcome & { readonly name: string; readonly contextWindow: number })[];
  };
  return outcomes
    .filter((outcome) => outcome.contextWindow === contextWindow)
    .map((outcome) => ({ name: outcome.name, outcome }));
}

async function inWindow(
  contextWindow: number,
  trajectory: Trajectory,
  peers: readonly Row[],
): Promise<Figure[]> {
  const rows: Row[] = [];
  for (const [name, policy] of Object.entries(POLICIES))
    rows.push({
      name,
      outcome: await replayOurs(new Replay(trajectory, contextWindow, prefixText()), policy),
    });
  const [ours] = rows as [Row];
  const window = `${contextWindow / 1_000}k`;
  const figures = [
    ...[...rows, ...peers].map((row) => rowFigure(window, row, ours)),
    ...(await occasions(contextWindow, trajectory)),
  ];
  const [cheapest] = peers.toSorted((a, b) => a.outcome.perStep - b.outcome.perStep);
  const [best] = peers.toSorted((a, b) => b.outcome.facts - a.outcome.facts);
  if (cheapest === undefined || best === undefined) return figures;
  return [
    ...figures,
    {
      name: `${window}: ours against the cheapest other`,
      value: ours.outcome.perStep - cheapest.outcome.perStep,
      unit: "tokens",
      n: 1,
      ratio: ours.outcome.perStep / cheapest.outcome.perStep,
      goal: ratioAtMost(1),
      note: `${cheapest.name}; facts ${percent(ours.outcome.facts)} to its ${percent(cheapest.outcome.facts)}, the best of the others' ${percent(best.outcome.facts)} (${best.name})`,
    },
  ];
}

/** Share of the trigger that is tried on occasions on which the summary comes first. */
const TRIED_SHARE = 0.7;

/** What the table of `config/budget.ts` is made from: an occasion on which old results are hidden first must be worth it. */
async function occasions(contextWindow: number, trajectory: Trajectory): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const occasion of ["trigger", "return", "smaller"] as const) {
    const share = pruneFirstFor(contextWindow)[occasion];
    const replay = () => new Replay(trajectory, contextWindow, prefixText());
    const { first, summary } = await compareFirst(occasion, share ?? TRIED_SHARE, replay);
    figures.push({
      name: `${contextWindow / 1_000}k: prune first, ${occasion}`,
      value: first.perStep,
      unit: "tokens a step",
      n: 1,
      ratio: first.perStep / summary.perStep,
      goal: share === undefined ? undefined : ratioAtMost(1.02),
      note:
        `the summary first: ${summary.perStep.toFixed(0)}; facts ${percent(first.facts)} to ${percent(summary.facts)}; prunes ${first.prunes.toFixed(1)}; ` +
        (share === undefined
          ? "not so by default"
          : `so by default, if at most ${percent(share)} of the trigger are left`),
    });
  }
  return figures;
}

function rowFigure(window: string, { name, outcome }: Row, ours: Row): Figure {
  const { cachedShare, rounds, prunes, overflows, facts, factsOf, summaries, ownOutput } = outcome;
  const { rule, decision, path, finding } = factsOf;
  return {
    name: `${window}: ${name}`,
    value: outcome.perStep,
    unit: "tokens a step",
    n: 1,
    ratio: outcome.perStep / ours.outcome.perStep,
    note:
      `cached ${percent(cachedShare)}; rounds ${rounds.toFixed(1)}, prunes ${prunes.toFixed(1)}, overflows ${overflows.toFixed(1)}; ` +
      `facts in view ${percent(facts)} (rules ${percent(rule)}, decisions ${percent(decision)}, paths ${percent(path)}, findings ${percent(finding)}); ` +
      `of it summaries ${summaries.toFixed(0)}, the agent's own output ${ownOutput.toFixed(0)}`,
  };
}

const COMMON_NOTE = `Tokens a step are billed-equivalent input: uncached 1, cached 0.1 (from 1,024 tokens, in steps of 128), output 8, summaries included.
  Facts are found by rules, the same for all (test/bench/policies/facts.ts): the person's sentences that hold from then on,
  the agent's that give a reason for a change, files written, errors of failed commands and the results of test runs.`;

/** What the figures mean; printed under the table. */
export function policyNote({ file }: PolicyMaterial): string {
  if (file !== undefined) return `Policies: the session of ${file}. ${COMMON_NOTE}`;
  return `Policies: one session of 300 steps, recorded with real tools in a real sandbox over this repository's own commits; which calls were made
  was chosen by a script, not by a model. A person who comes back after a turn's end comes back after an hour, to an empty cache.
  ${COMMON_NOTE}
  Others were measured once (test/fixtures/README.md says how).`;
}

let prefix: string | undefined;

function prefixText(): string {
  if (prefix === undefined) {
    const { system, tools } = prefixWith(
      systemPrompt({ instructions: undefined, config: { sandbox: { image: DEFAULT_IMAGE } } }),
      toolRegistry,
    );
    const shown = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
    prefix = `${system}\n${JSON.stringify(shown)}`;
  }
  return prefix;
}

function percent(share: number): string {
  return Number.isNaN(share) ? "none" : `${(share * 100).toFixed(0)} %`;
}
