import { usd } from "../text/format.ts";

/**
 * The limits that end a run in an orderly way, each with status `max_steps`; and the question to a person at one of them: how much more the
 * session may use.
 */
export type Limit = "steps" | "cost" | "deadline" | "budget";

/** Limits that a run meets by its own counts; a budget is met by a request. */
export type OwnLimit = Exclude<Limit, "budget">;

/** The error by which a session's row names the limit; the step limit has none. */
export const LIMIT_ERRORS = { cost: "CostLimit", deadline: "DeadlineLimit", budget: "BudgetLimit" } as const;

/** Which limit ended a session; undefined if none did. */
export function limitOf(status: string, error: unknown): Limit | undefined {
  if (status !== "max_steps") return undefined;
  const type = (error as { readonly type?: string } | null)?.type;
  if (type === LIMIT_ERRORS.cost) return "cost";
  if (type === LIMIT_ERRORS.budget) return "budget";
  return type === LIMIT_ERRORS.deadline ? "deadline" : "steps";
}

/** Limits at which a person may be asked; a deadline always ends the run. */
export type BudgetLimit = Exclude<Limit, "deadline">;

/** A budget of the operator's that has no room for a session's next request. */
export interface SpentBudget {
  /** For people: `person ann, month`. */
  readonly scope: string;
  /** The scope in its current period, which an allowance is for. */
  readonly window: string;
  /** The day on which it begins anew: then nobody need be asked. */
  readonly before: string;
  /** USD that the next request may cost. */
  readonly nextUsd: number;
}

/**
 * A limit that was reached: in USD for the session with its delegates, or in steps of the run; for a budget in USD of all that it is
 * for.
 */
export interface ReachedLimit {
  readonly limit: BudgetLimit;
  readonly used: number;
  readonly of: number;
  /** Set if the limit is a budget. */
  readonly budget?: SpentBudget;
}

/** The operator's budget is used up, so the model was not asked. Nothing was stored. */
export interface OverBudgetFacts {
  readonly kind: "over-budget";
  /** Which, and until when. */
  readonly reason: string;
  readonly epoch: number;
  /** A person is asked whether the session may exceed it. Absent: it ends. */
  readonly asks?: ReachedLimit & { readonly offer: number };
}

export interface AskBudgetInput extends ReachedLimit {
  /** The step that waits. */
  readonly step: number;
  /** Compaction rounds so far. */
  readonly round: number;
  /** How much more is offered: as much as the run started with. */
  readonly offer: number;
}

/** An open budget question, as later activities need it. */
export interface OpenBudget extends AskBudgetInput {
  readonly id: string;
}

const STOP = "stop";

const amountText = (limit: BudgetLimit, amount: number): string =>
  limit === "steps" ? `${amount} step${amount === 1 ? "" : "s"}` : usd(amount);

/** What is known of a budget that has no room, in a sentence or two. */
export const spentText = (
  { used, of }: Pick<ReachedLimit, "used" | "of">,
  { scope, nextUsd, before }: Pick<SpentBudget, "scope" | "nextUsd" | "before">,
): string =>
  `The budget for ${scope} is ${usd(of)}; ${usd(used)} of it are used or reserved, and the next request may cost ${usd(nextUsd)}. It begins anew on ${before}.`;

export function budgetText({ limit, used, of, budget }: ReachedLimit): string {
  if (budget !== undefined)
    return `${spentText({ used, of }, budget)} May this session go on now, with money beyond it?`;
  return limit === "cost"
    ? `This session has cost ${usd(used)}; its limit is ${usd(of)} (limits.maxCostUsd). May it continue?`
    : `This run has made ${amountText(limit, used)}; its limit is ${of} (limits.maxSteps). May it continue?`;
}

/**
 * The options: as much again (capped at what is allowed), or ending the run.
 * @returns undefined if nothing more may be granted, so that there is nothing to ask
 */
export function budgetOptions(limit: BudgetLimit, offer: number, most: number): string[] | undefined {
  const amount = Math.min(offer, most);
  const least = limit === "steps" ? 1 : LEAST_USD;
  return amount < least ? undefined : [`another ${amountText(limit, amount)}`, STOP];
}

/** Smaller amounts are not distinguished in text. */
const LEAST_USD = 0.0001;

const MORE_USD = /^(?:another )?\$ ?(\d+(?:\.\d+)?)$/i;
const MORE = { cost: MORE_USD, budget: MORE_USD, steps: /^(?:another )?(\d+) steps?$/i } as const;

/** The amount that an answer grants; undefined if the answer ends the run. */
export function parseGrantedAmount(limit: BudgetLimit, answer: string): number | undefined {
  const digits = MORE[limit].exec(answer.trim())?.[1];
  return digits === undefined || Number(digits) <= 0 ? undefined : Number(digits);
}

/** Which limit a question with these options is about. */
const limitAsked = (options: readonly string[]): BudgetLimit =>
  options.some((option) => parseGrantedAmount("steps", option) !== undefined) ? "steps" : "cost";

/** Example of an amount as a person may type it, for a question with these options. */
export const amountLike = (options: readonly string[]): string =>
  limitAsked(options) === "steps" ? "20 steps" : "$2.50";

/** Parses an amount in a person's own words, such as `$2.50` or `20 steps`; undefined if it is not an amount. */
export function readMore(
  options: readonly string[],
  answer: string,
  most: number = Infinity,
):
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reason: string }
  | undefined {
  const limit = limitAsked(options);
  const amount = parseGrantedAmount(limit, answer);
  if (amount === undefined) return undefined;
  if (amount > most)
    return { ok: false, reason: `the operator allows the session at most ${amountText(limit, most)} more` };
  const text = `another ${amountText(limit, amount)}`;
  // An amount that cannot be parsed again would end the session that it was meant to continue.
  return parseGrantedAmount(limit, text) === undefined
    ? { ok: false, reason: "the amount is too small or too large to be given" }
    : { ok: true, text };
}

/** The limit after an extension, which is counted from the current use. */
export function raisedLimit({ limit, used, of }: ReachedLimit, amount: number): number {
  const sum = Math.max(used, of) + amount;
  return limit === "steps" ? sum : Number(sum.toFixed(6));
}
