/** Sessions of the crash matrix: the model's answers, step by step, with fixed call ids. */
import type { ParsedRequest, Reply } from "../model-server/wire.ts";
import type { ConfigChanges } from "../run-config.ts";
import { call, text } from "../scripted-model.ts";
import { goodSummary, isSummaryRequest, wordsOf } from "../scripted-summaries.ts";

export interface CrashScript {
  /** Answers from step 1; the last one ends the run. */
  readonly steps: readonly Reply[];
  readonly config?: ConfigChanges;
  /** Signals sent at a step's first request: before its answer, so they count at the next step. */
  readonly signals?: Readonly<Record<number, { readonly name: string; readonly message: object }>>;
}

export type ScriptName = "plain" | "waiting" | "compacting" | "pruning";

/** The file in the sandbox that the waiting command waits for. */
export const GO_FILE = "/tmp/go";

const step = (number: number, ...calls: [name: string, input: object][]): Reply => ({
  parts: [
    text(`Step ${number}.`),
    ...calls.map(([name, input], index) => call(name, input, { callId: `call-${number}-${index}` })),
  ],
});
const mark = (name: string) => `echo ${name} >> run.marks`;
const noisy = (number: number, lines: number): [string, object] => [
  "bash",
  { command: `${mark(`m${number}`)}; for i in $(seq ${lines}); do echo "line $i of step ${number}"; done` },
];
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

export const CRASH_SCRIPTS: Readonly<Record<ScriptName, CrashScript>> = {
  plain: {
    steps: [
      step(1, ["bash", { command: `${mark("m1")}; echo one` }]),
      step(
        2,
        ["bash", { command: `${mark("m2a")}; echo two` }],
        ["write_file", { path: "notes.txt", content: "first\nsecond\n" }],
        ["bash", { command: `${mark("m2c")}; echo also two` }],
      ),
      step(3, ["edit_file", { path: "notes.txt", old_string: "second", new_string: "changed" }]),
      step(4, ["read_file", { path: "notes.txt" }]),
      step(5, ["bash", { command: `${mark("m5")}; sort run.marks` }]),
      step(6),
    ],
    signals: { 2: { name: "guidance", message: { id: "said", text: "mind the tests" } } },
  },
  waiting: {
    steps: [
      step(1, [
        "bash",
        {
          command: `${mark("m1")}; until [ -e ${GO_FILE} ]; do sleep 0.1; done; echo went`,
          timeout_seconds: 600,
        },
      ]),
      step(2, ["bash", { command: `${mark("m2")}; cat run.marks` }]),
      step(3),
    ],
  },
  compacting: {
    steps: [...range(1, 7).map((number) => step(number, noisy(number, 40))), step(8)],
    config: { context: { options: { keepMessages: 2 } } },
    signals: { 6: { name: "compact", message: {} } },
  },
  // Prune protects the last two turns, so two messages come late; near the trigger, it hides old results.
  pruning: {
    steps: [...range(1, 11).map((number) => step(number, noisy(number, 220))), step(12)],
    config: {
      contextWindow: 32_000,
      maxOutput: 1_000,
      context: { options: { prune: "always", pruneProtect: 6_400, pruneMinimum: 4_800 } },
    },
    signals: {
      7: { name: "guidance", message: { id: "said-7", text: "go on" } },
      8: { name: "guidance", message: { id: "said-8", text: "and on" } },
    },
  },
};

/** The step that a request asks for: one more than the newest in its conversation. */
export function stepOf(request: ParsedRequest): number {
  const numbers = [...wordsOf(request).matchAll(/Step (\d+)\./g)].map((found) => Number(found[1]));
  return Math.max(0, ...numbers) + 1;
}

/** Plays a script by a request's content; `first` gets each step's first request and may replace the answer. */
export function playCrashScript(
  script: CrashScript,
  first: (
    request: { readonly purpose: "step" | "summary"; readonly step: number },
    reply: Reply,
  ) => Reply | Promise<Reply>,
): (request: ParsedRequest) => Reply | Promise<Reply> {
  const seen = new Set<string>();
  return (request) => {
    const number = stepOf(request);
    const purpose = isSummaryRequest(request) ? "summary" : "step";
    const reply = purpose === "summary" ? goodSummary(request) : script.steps[number - 1];
    if (!reply) throw new Error(`Step ${number} was not expected.`);
    const key = `${purpose} ${number}`;
    if (seen.has(key)) return reply;
    seen.add(key);
    return first({ purpose, step: number }, reply);
  };
}
