/** The session's script: what the model answers at each request, and which case each step belongs to. Data. */
import type { Reply, ReplyPart } from "../model-server/wire.ts";
import { call, text, thought } from "../scripted-model.ts";

export const CASES = [
  "tools",
  "image",
  "reasoning",
  "429",
  "cut",
  "interrupt",
  "overflow",
  "switch",
] as const;
export type Case = (typeof CASES)[number];
/** `✓`, `–` if the server has no such feature, or what went wrong. */
export type Outcome = Readonly<Record<Case, string>>;

export const STEPS = 20;
export const WAIT_SECONDS = 3;
/** Steps at which something happens; all others are tools'. */
export const CASE_OF: Readonly<Record<number, Case>> = {
  2: "image",
  3: "reasoning",
  4: "429",
  5: "cut",
  6: "cut",
  7: "cut",
  8: "interrupt",
  9: "interrupt",
  10: "interrupt",
  11: "interrupt",
  13: "overflow",
  14: "overflow",
  16: "switch",
  17: "switch",
  18: "switch",
  19: "switch",
};

export const works = (step: number): ReplyPart[] => [
  thought(`Thought ${step}.`),
  call("bash", { command: `for i in $(seq 60); do echo "step ${step} line $i of a build"; done` }),
];

/** One answer for each request of a step, those that fail included. */
export function answersOfSession(): Reply[] {
  const cuts: readonly ReplyPart[] = [
    { type: "drop" },
    { type: "end" },
    { type: "error", message: "The upstream broke off." },
  ];
  const script: Reply[] = [
    {
      parts: [
        thought("Thought 1."),
        text("Two at once."),
        call("bash", { command: "echo a" }),
        call("bash", { command: "echo b" }),
      ],
    },
    { parts: [thought("Thought 2."), call("view_image", { path: "dot.png" })] },
    { parts: works(3) },
    { error: { status: 429, rateLimitSeconds: WAIT_SECONDS } },
    { parts: works(4) },
  ];
  for (const [index, cut] of cuts.entries())
    script.push({ parts: [text("This half is "), cut] }, { parts: works(5 + index) });
  for (let step = 8; step < STEPS; step += 1) {
    const isInterrupted = step === 8 || step === 10;
    if (step !== 16 && step !== 17)
      script.push({ parts: isInterrupted ? [text("I begin with"), { type: "hang" }] : works(step) });
  }
  return [...script, { parts: [text("It is done.")] }];
}
