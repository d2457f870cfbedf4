/** The questions that a step's calls ask of people, as the run holds them. None is open at a step boundary. Pure. */
import type { OpenBudget } from "../activities/contract/budget-question.ts";
import type { QuestionFacts, Settlement } from "../activities/contract/questions.ts";

export interface OpenQuestion extends QuestionFacts {
  readonly askedAtMs: number;
  /** Of a question about a limit. */
  readonly budget?: OpenBudget;
  settlement: Settlement | undefined;
}

/** The questions of a step. */
export interface Asking {
  open: OpenQuestion[];
  /** Calls of the step that do not wait for a person. */
  busy: number;
  /** Questions that are being stored: people may have read them before the run is told. */
  storing: number;
  /** Messages of people so far. */
  messages: number;
  /** While there are only questions: ends before an answer is written. */
  idle: Promise<void> | undefined;
}

export const createAsking = (): Asking => ({
  open: [],
  busy: 0,
  storing: 0,
  messages: 0,
  idle: undefined,
});

/** Those that wait for an answer. */
export const unanswered = ({ open }: Asking): OpenQuestion[] =>
  open.filter(({ settlement }) => settlement === undefined);

/** The two largest units: `2 d 3 h`. */
export function lasted(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const units: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3_600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = units.findIndex(([count]) => count > 0);
  if (first === -1) return "0 s";
  return units
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}
