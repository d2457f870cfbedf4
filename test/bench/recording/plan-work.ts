/** The whole recorded task: turns of a person, each with its changes as steps. Pure. */
import { createRandom } from "../policies/material.ts";
import type { Commit } from "./commits.ts";
import { GUIDANCE, RETURNS, TASK } from "./person.ts";
import { planCommit, type PlannedStep } from "./plan-commit.ts";

export interface WorkStep extends PlannedStep {
  /** Said by the person while this step is under way. */
  readonly guidance?: string;
  /** Said after this step, which ended the turn. */
  readonly comesBack?: string;
}

const GUIDANCE_EVERY = 23;
/** A turn ends with the first change that is whole after so many steps. */
const TURN_STEPS = 40;
const SEED = 4;

/** @returns the task's text, and so many steps; the last one makes no calls */
export function planWork(commits: readonly Commit[], steps: number): { task: string; steps: WorkStep[] } {
  const random = createRandom(SEED);
  const list: WorkStep[] = [
    {
      text: "First a look at the place, and a repository of its own for the commits.",
      calls: [
        {
          name: "bash",
          input: {
            command:
              "git init -q -b main && git config user.name agent && git config user.email agent@example.com && git add -A && git commit -q -m 'As it was handed over' && git ls-files | wc -l",
          },
        },
        { name: "read_file", input: { path: "AGENTS.md" } },
        { name: "read_file", input: { path: "ARCHITECTURE.md" } },
      ],
    },
  ];
  const returns = [...RETURNS];
  let turnBegan = 0;
  for (const [at, commit] of commits.entries()) {
    list.push(...planCommit(commit, random));
    const next = commits[at + 1];
    if (next === undefined || list.length >= steps) break;
    if (list.length - turnBegan < TURN_STEPS || returns.length === 0) continue;
    list.push({
      text: `Done: ${commit.subject}. It is committed; what the checks said is above.`,
      calls: [],
      comesBack: `${returns.shift()}${next.subject}.`,
    });
    turnBegan = list.length;
  }
  const kept = list.slice(0, steps - 1);
  const last: WorkStep = { text: "That is as far as this list goes: all of it is committed.", calls: [] };
  return { task: `${TASK}${commits[0]?.subject}.`, steps: [...kept.map(withGuidance), last] };
}

/** Of the changes after the first the agent is told with the person's next word, or finds them in its plan. */
function withGuidance(step: WorkStep, at: number): WorkStep {
  const index = Math.floor(at / GUIDANCE_EVERY) - 1;
  const due = at % GUIDANCE_EVERY === 0 && step.calls.length > 0;
  const guidance = due ? GUIDANCE[index] : undefined;
  return guidance === undefined ? step : { ...step, guidance };
}
