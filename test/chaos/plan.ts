/** What a session of the soak does: a script drawn from the seed, the same answer for the same step. */
import type { ConfigChanges } from "../support/run-config.ts";
import type { Reply, ReplyPart } from "../support/model-server/wire.ts";
import { stepOf } from "../support/crash/scripts.ts";
import { call, text } from "../support/scripted-model.ts";
import { goodSummary, isSummaryRequest } from "../support/scripted-summaries.ts";
import type { Answering } from "../support/shared-model.ts";
import type { Random } from "../support/random.ts";

export interface SessionPlan {
  readonly steps: readonly Reply[];
  readonly config: ConfigChanges;
}

/** Lines of the file that edits change, one each. */
const ITEMS = 60;

type Call = readonly [name: string, input: object];

export function drawPlan(random: Random): SessionPlan {
  const count = random.between(8, 24);
  const small = random.chance(0.5);
  const steps = [
    answer(1, random, [
      "write_file",
      {
        path: "items.txt",
        content: Array.from({ length: ITEMS }, (_, item) => `item-${item}: open`).join("\n"),
      },
    ]),
    ...Array.from({ length: count }, (_, place) =>
      answer(place + 2, random, ...drawCalls(place + 2, random)),
    ),
  ];
  return { steps, config: small ? { contextWindow: 16_000, maxOutput: 1_000 } : {} };
}

/** Plays a plan by what a request says. Beyond its end the agent has nothing left to do. */
export function playPlan({ steps }: SessionPlan): Answering {
  return (request) => {
    if (isSummaryRequest(request)) return goodSummary(request);
    const step = stepOf(request);
    return steps[step - 1] ?? { parts: [text(`Step ${step}. All is done.`)] };
  };
}

function answer(step: number, random: Random, ...calls: Call[]): Reply {
  const parts: ReplyPart[] = [
    text(`Step ${step}. ${"I go on with the work. ".repeat(random.between(0, 12))}`),
    ...calls.map(([name, input], index) => call(name, input, { callId: `call-${step}-${index}` })),
  ];
  // Some answers take their time, so that a fault may come in their middle.
  return random.chance(0.4) ? { parts, chunkChars: 20, chunkDelayMs: random.between(10, 120) } : { parts };
}

function drawCalls(step: number, random: Random): Call[] {
  const mark = (name: string) => `echo ${name} >> run.marks`;
  const seconds = (random.between(1, 40) / 10).toFixed(1);
  return random.pick<() => Call[]>([
    () => [["bash", { command: `${mark(`m${step}`)}; echo step ${step}` }]],
    () => [["bash", { command: `${mark(`m${step}`)}; sleep ${seconds}; echo end of ${step}` }]],
    () =>
      Array.from({ length: random.between(2, 4) }, (_, index): Call => [
        "bash",
        { command: `${mark(`m${step}-${index}`)}; sleep 0.${random.between(0, 9)}; echo ${step}-${index}` },
      ]),
    () => [
      [
        "edit_file",
        { path: "items.txt", old_string: `item-${step}: open`, new_string: `item-${step}: done` },
      ],
      ["read_file", { path: "items.txt", limit: 5 }],
    ],
    () => [["write_file", { path: `notes/${step}.md`, content: `# Step ${step}\n${"words ".repeat(200)}` }]],
    () => [
      ["bash", { command: `sleep ${seconds}; echo ${step} >> background.txt`, background: true }],
      ["list_directory", { path: "." }],
    ],
    () => [
      [
        "bash",
        {
          command: `${mark(`m${step}`)}; for i in $(seq ${random.between(60, 250)}); do echo "line $i of step ${step} of a build"; done`,
        },
      ],
      ["grep_content", { pattern: "open", path: "items.txt" }],
    ],
  ])();
}
