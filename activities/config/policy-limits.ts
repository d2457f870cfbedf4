/** How one rule of the operator's policy compares with what a session asks for. Pure. */
import { megabytes } from "./sizes.ts";

export interface PolicyRefusal {
  /** The rule's name in the file, such as `max.memory`. */
  readonly rule: string;
  /** What was requested, and what is allowed. */
  readonly why: string;
  /** Only the session's own model is refused, which a person can change. */
  readonly isOwnModel?: true;
}

/** A rule's name in the policy file, and the setting that it limits. */
interface Limited {
  readonly rule: string;
  readonly setting: string;
}

/** Whether what is asked for fits none of what is allowed; an absent rule allows all. */
export function outside(
  { rule, setting }: Limited,
  asked: string,
  allowed: readonly string[] | undefined,
  fits: (pattern: string, asked: string) => boolean = (name, text) => name === text,
): PolicyRefusal | undefined {
  if (allowed === undefined || allowed.some((pattern) => fits(pattern, asked))) return undefined;
  return { rule, why: `${setting} is ${asked}, and may be: ${allowed.join(", ") || "nothing"}` };
}

/** Whether it is more than the rule has. @param asked a number, or a size such as `2g` */
export function above<Amount extends string | number>(
  { rule, setting }: Limited,
  asked: Amount,
  most: Amount | undefined,
): PolicyRefusal | undefined {
  if (most === undefined || amountOf(asked) <= amountOf(most)) return undefined;
  return { rule, why: `${setting} is ${asked === Infinity ? "not set" : asked}, and may be ${most} at most` };
}

const amountOf = (value: string | number) => (typeof value === "number" ? value : megabytes(value));
