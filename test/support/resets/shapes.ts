/** What sessions of the reset runs do: each answer follows from the request, and names its step and the line that gave it. */
import type { ConfigChanges } from "../run-config.ts";
import { stepOf } from "../crash/scripts.ts";
import { delegating } from "../delegating.ts";
import type { ParsedRequest, Reply, ReplyPart } from "../model-server/wire.ts";
import { call, text } from "../scripted-model.ts";
import { goodSummary, isSummaryRequest, wordsOf } from "../scripted-summaries.ts";

export interface Shape {
  readonly name: ShapeName;
  readonly config?: ConfigChanges;
  /** The calls of a step; none for the last. */
  readonly calls: (step: number, words: string) => readonly ReplyPart[];
  /** Said when the first run has ended. */
  readonly says?: string;
  /** A signal that is sent when this step is first asked for. */
  readonly signal?: { readonly step: number; readonly name: string };
  /** The client's retry from this step, when the first run has ended. */
  readonly retryFrom?: number;
  /** The view of a step follows from the answers before it. */
  readonly isExact: boolean;
}

const SHAPE_NAMES = [
  "plain",
  "parallel",
  "question",
  "approval",
  "park",
  "resume",
  "compaction",
  "prune",
  "undo",
  "continued",
  "delegates",
  "retry",
] as const;
type ShapeName = (typeof SHAPE_NAMES)[number];

const echo = (step: number, place = 0) =>
  call("bash", { command: `echo result ${step}.${place} >> all.txt; echo result ${step}.${place}` });
const until = (last: number, of: (step: number) => readonly ReplyPart[]) => (step: number) =>
  step < last ? of(step) : [];
const noisy = (step: number, lines: number) =>
  call("bash", { command: `for i in $(seq ${lines}); do echo "line $i of step ${step}"; done` });
const ask = call("ask_user", { question: "Which one?", options: ["one", "two"] });
const questions = { mode: "ask", parkAfter: 600_000, maxOpen: 8 } as const;

export const SHAPES: readonly Shape[] = [
  { name: "plain", isExact: true, calls: until(5, (step) => [echo(step)]) },
  { name: "parallel", isExact: true, calls: until(3, (step) => [echo(step), echo(step, 1), echo(step, 2)]) },
  {
    name: "question",
    isExact: true,
    config: { questions },
    calls: until(4, (step) => (step === 2 ? [echo(step), ask] : [echo(step)])),
  },
  {
    name: "approval",
    isExact: true,
    config: { questions, permissions: [{ tool: "write_file", action: "ask" }] },
    calls: until(4, (step) =>
      step === 2
        ? [call("write_file", { path: "asked.txt", content: "written" }), echo(step, 1)]
        : [echo(step)],
    ),
  },
  {
    name: "park",
    isExact: true,
    config: { questions: { ...questions, parkAfter: 50 } },
    calls: until(4, (step) => (step === 2 ? [ask] : [echo(step)])),
  },
  {
    name: "resume",
    isExact: true,
    says: "Please go on.",
    calls: (step, words) => (step < (words.includes("Please go on.") ? 5 : 3) ? [echo(step)] : []),
  },
  {
    name: "compaction",
    isExact: false,
    config: { context: { options: { keepMessages: 2 } } },
    signal: { step: 3, name: "compact" },
    calls: until(6, (step) => [noisy(step, 40)]),
  },
  {
    name: "prune",
    isExact: true,
    config: { contextWindow: 32_000, maxOutput: 1_000, context: { options: { prune: "always" } } },
    calls: until(8, (step) => [noisy(step, 300)]),
  },
  {
    name: "undo",
    isExact: false,
    config: { context: { options: { keepMessages: 2 } } },
    signal: { step: 3, name: "compactAndUndo" },
    calls: until(6, (step) => [noisy(step, 40)]),
  },
  {
    name: "continued",
    isExact: true,
    // The fewest that the settings allow.
    config: { limits: { maxHistoryEvents: 50 } },
    calls: until(8, (step) => [echo(step)]),
  },
  {
    name: "delegates",
    // A delegate that is started again has its new epoch in its name, which the result says.
    isExact: false,
    config: delegating(),
    calls: until(4, (step) =>
      step === 2 ? [call("delegate", { task: "A task for another." }), echo(step, 1)] : [echo(step)],
    ),
  },
  { name: "retry", isExact: true, retryFrom: 2, calls: until(4, (step) => [echo(step)]) },
];

/** @param line that a new answer belongs to */
export function playShape(shape: Shape, line: () => number, first: (step: number) => Promise<void>) {
  const seen = new Set<number>();
  return async (request: ParsedRequest): Promise<Reply> => {
    if (isSummaryRequest(request)) return goodSummary(request);
    const words = wordsOf(request);
    const step = stepOf(request);
    if (words.includes("A task for another.") && !words.includes('"delegate"'))
      return { parts: [text("The other has done it.")] };
    if (!seen.has(step)) {
      seen.add(step);
      await first(step);
    }
    return { parts: [text(`Step ${step}. Line ${line()}.`), ...shape.calls(step, words)] };
  };
}
