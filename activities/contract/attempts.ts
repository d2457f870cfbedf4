/** Best of several sessions on one task: what decides is what commands said about their work, never a model. */
import type { DeliveryOrder } from "./delivery.ts";
import { isUnverified, type VerifiedWork, type VerifyOutcome } from "./verify.ts";

/** What is wanted of a batch whose items are attempts at one task. */
export interface AttemptsOrder {
  /** How the best one is delivered; absent: it is only named. */
  readonly deliver?: DeliveryOrder;
  /** The first that passes ends the others. */
  readonly first?: true;
}

/** An attempt that has ended by an answer, and was verified. */
export interface TaskAttempt {
  readonly sessionId: string;
  /** From 1. */
  readonly number: number;
  readonly outcome: VerifyOutcome;
  /** The number in the file of `verify.result`: the larger, the better. */
  readonly result?: number;
  /** Lines added and removed in files that are no tests. */
  readonly changedLines?: number;
  /** USD. */
  readonly costUsd: number;
}

/** The best attempt, and what became of the choice. */
export interface ChosenAttempt extends TaskAttempt {
  /** What set it apart from the next one. */
  readonly why: string;
  readonly isUnverified?: true;
}

/** What the workflow needs to deliver it. */
export interface AttemptDelivery {
  readonly sessionId: string;
  readonly deliver: {
    readonly order: DeliveryOrder;
    readonly outcome: { readonly status: "completed"; readonly verified: VerifiedWork };
  };
}

/** A command that could not be run says nothing of the work, so such work is the last choice. */
const RANKS: Readonly<Record<VerifyOutcome, number>> = {
  passed: 0,
  "changed-checks": 1,
  failed: 2,
  unavailable: 3,
};

/** In this order; negative: the first one is better. One that lacks a number comes after those that have it. */
const CRITERIA: readonly (readonly [
  why: (best: TaskAttempt) => string,
  compare: (a: TaskAttempt, b: TaskAttempt) => number,
])[] = [
  [({ outcome }) => outcome, (a, b) => RANKS[a.outcome] - RANKS[b.outcome]],
  [
    ({ result }) => `the largest result (${result})`,
    (a, b) => difference(negative(a.result), negative(b.result)),
  ],
  [
    ({ changedLines }) => `the fewest changed lines outside of tests (${changedLines})`,
    (a, b) => difference(a.changedLines, b.changedLines),
  ],
  [() => "the lowest cost", (a, b) => a.costUsd - b.costUsd],
  [() => "equal in all; the lowest number", (a, b) => a.number - b.number],
];

function difference(a: number | undefined, b: number | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  return a - b;
}

const negative = (value: number | undefined) => (value === undefined ? undefined : -value);

/** @returns undefined if there is none */
export function bestAttempt(
  attempts: readonly TaskAttempt[],
  settings: { readonly refusesChangedChecks?: true | undefined } = {},
): ChosenAttempt | undefined {
  const [best, next] = attempts.toSorted(
    (a, b) => CRITERIA.map(([, compare]) => compare(a, b)).find((sign) => sign !== 0) ?? 0,
  );
  if (best === undefined) return undefined;
  const apart = next && CRITERIA.find(([, compare]) => compare(best, next) !== 0);
  const why = apart === undefined ? "the only one that was verified" : apart[0](best);
  const { refusesChangedChecks } = settings;
  return isUnverified(best.outcome, refusesChangedChecks === true ? { refusesChangedChecks } : {})
    ? { ...best, why, isUnverified: true }
    : { ...best, why };
}

const TEST_FOLDER = /^(?:__tests__|__mocks__|__snapshots__|e2e|fixtures|specs?|testdata|tests?)$/i;
const TEST_FILE =
  /(?:[._-](?:test|tests|spec|e2e)\.[^.]+|^(?:test_.*|conftest)\.py|[A-Za-z0-9](?:Test|Tests|Spec)\.[a-z]+)$|\.snap$/;

/** Whether a path is that of a test by the names that languages and frameworks have for them. */
export function isTestPath(path: string): boolean {
  const names = path.split("/");
  const file = names.pop() ?? "";
  return TEST_FILE.test(file) || names.some((name) => TEST_FOLDER.test(name));
}
