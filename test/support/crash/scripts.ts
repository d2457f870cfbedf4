/** Sessions of the crash matrix: the model's answers, step by step, with fixed call ids. */
import { verifySchema } from "../../../activities/config/verify-settings.ts";
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
  /** What comes instead of a step's first answer. */
  readonly first?: Readonly<Record<number, Reply>>;
  /** Where the session rests until it is brought on. */
  readonly rest?: CrashRest;
  /** The session's time runs from this step's first answer: it is given when all other sessions are at their points. */
  readonly late?: number;
  /** It works on a repository of its own, to which its work is pushed. */
  readonly hasRemote?: true;
  /** It belongs to a tenant of its own, so money is set aside for each of its requests. */
  readonly hasTenant?: true;
  /** Notices are told at a boundary that depends on when a command was seen to have ended. */
  readonly notices?: "anywhere";
}

export interface CrashRest {
  /** A command waits for the file; a call of `wait` or a question is open; the sandbox was parked. */
  readonly until: "command" | "fresh command" | "wait" | "question" | "parked";
  /** The file is made, the question answered, or the wait ended by a person; absent: time ends the rest. */
  readonly by?: "go" | "answer" | "money" | "wake";
}

export type ScriptName = keyof typeof SCRIPTS;

/** The file in the sandbox that a command waits for. */
export const GO_FILE = "/tmp/go";
const GO_LOOP = `until [ -e ${GO_FILE} ]; do sleep 0.1; done`;

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

/** Longer than the last sessions take to their points, shorter than what a lost heartbeat is waited for. */
const REST_SECONDS = 15;

/** A mark, the rest, a mark, the end. */
const around = (resting: [name: string, input: object], first = `${mark("m1")}; echo one`): Reply[] => [
  step(1, ["bash", { command: first }]),
  step(2, resting),
  step(3, ["bash", { command: `${mark("m3")}; echo three` }]),
  step(4),
];

const SCRIPTS = {
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
          command: `${mark("m1")}; ${GO_LOOP}; echo went`,
          timeout_seconds: 600,
        },
      ]),
      step(2, ["bash", { command: `${mark("m2")}; cat run.marks` }]),
      step(3),
    ],
    rest: { until: "command", by: "go" },
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
  shortWait: { steps: around(["wait", { reason: "the deploy", seconds: 5 }]) },
  woken: {
    steps: around(["wait", { reason: "the deploy", seconds: 3_600 }]),
    rest: { until: "wait", by: "wake" },
  },
  timedWait: {
    steps: around(["wait", { reason: "the deploy", seconds: REST_SECONDS }]),
    late: 2,
    rest: { until: "wait" },
  },
  processWait: {
    steps: [
      step(1, ["bash", { command: `${mark("m1")}; ${GO_LOOP}; echo finished; exit 3`, background: true }]),
      ...around(["wait", { reason: "the tests", process: "s1c0", seconds: 3_600 }]).slice(1),
    ],
    rest: { until: "wait", by: "go" },
  },
  // Its end is seen at step 3 or 4, and told at the boundary behind that.
  background: {
    steps: [
      step(1, ["bash", { command: `${mark("m1")}; ${GO_LOOP}; touch /tmp/ended; exit 3`, background: true }]),
      step(2, [
        "bash",
        { command: `${mark("m2")}; touch ${GO_FILE}; until [ -e /tmp/ended ]; do sleep 0.1; done` },
      ]),
      ...[3, 4, 5].map((number) => step(number, ["bash", { command: `${mark(`m${number}`)}; sleep 0.2` }])),
      step(6),
    ],
    notices: "anywhere",
  },
  // The sandbox is stopped, and started again for the answer.
  question: {
    steps: around(["ask_user", { question: "Which licence?" }]),
    config: {
      questions: { mode: "ask", maxOpen: 8, parkAfter: 200 },
      sandbox: { park: { keep: 3_600_000 } },
    },
    rest: { until: "parked", by: "answer" },
  },
  laterQuestion: {
    steps: [
      step(1, ["ask_user", { question: "Which licence?", block: false }]),
      ...around(["wait", { reason: "the licence", question: "s1c0" }]).slice(1),
    ],
    rest: { until: "wait", by: "answer" },
  },
  limit: {
    steps: around(["bash", { command: `${mark("m2")}; echo two` }]),
    first: { 2: { error: { status: 429, rateLimitSeconds: REST_SECONDS } } },
    config: { questions: { mode: "ask", maxOpen: 8, parkAfter: 500 } },
    late: 2,
    rest: { until: "parked" },
  },
  // The second command fails if the first one ran twice.
  verified: {
    steps: [step(1, ["bash", { command: `${mark("m1")}; echo one` }]), step(2)],
    config: {
      verify: verifySchema.parse({
        commands: [`echo ran >> /tmp/verified; ${GO_LOOP}`, 'test "$(wc -l < /tmp/verified)" = 1'],
      }),
    },
    rest: { until: "command", by: "go" },
    hasRemote: true,
  },
  // Each look runs its commands once.
  mended: {
    steps: [
      step(1, ["bash", { command: `${mark("m1")}; echo one` }]),
      step(2),
      step(3, ["bash", { command: `${mark("m3")}; touch mended` }]),
      step(4),
    ],
    config: {
      verify: verifySchema.parse({
        commands: ["echo ran >> /tmp/verified; test -e mended", 'test "$(wc -l < /tmp/verified)" = 2'],
      }),
    },
  },
  fresh: {
    steps: [step(1, ["bash", { command: `${mark("m1")}; echo one` }]), step(2)],
    config: {
      verify: verifySchema.parse({
        where: "fresh",
        commands: [`echo ran >> /tmp/verified; ${GO_LOOP}`, 'test "$(wc -l < /tmp/verified)" = 1'],
      }),
    },
    rest: { until: "fresh command", by: "go" },
    hasRemote: true,
  },
  budget: {
    steps: around(["bash", { command: `${mark("m2")}; echo two` }]),
    config: { price: { input: 2.5, cached: 1.25, output: 10 } },
    hasTenant: true,
  },
  // Two steps of $300 fit in its budget; the third asks.
  allowed: {
    steps: around(["bash", { command: `${mark("m2")}; echo two` }]).map((reply) => ({
      ...reply,
      usage: { input: 20_000, output: 1_000, cached: 0, reasoning: 0 },
    })),
    config: { price: { input: 10_000, cached: 10_000, output: 100_000 } },
    hasTenant: true,
    rest: { until: "question", by: "money" },
  },
} satisfies Readonly<Record<string, CrashScript>>;

export const CRASH_SCRIPTS: Readonly<Record<ScriptName, CrashScript>> = SCRIPTS;

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
    return first({ purpose, step: number }, (purpose === "step" && script.first?.[number]) || reply);
  };
}
