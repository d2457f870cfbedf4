/** The limits that end a run in an orderly way, each with status `max_steps`. Pure. */

export type Limit = "steps" | "cost" | "deadline";

/** The error by which a session's row names the limit; the step limit has none. */
export const LIMIT_ERRORS = { cost: "CostLimit", deadline: "DeadlineLimit" } as const;

/** Which limit ended a session; undefined if none did. */
export function limitOf(status: string, error: unknown): Limit | undefined {
  if (status !== "max_steps") return undefined;
  const type = (error as { readonly type?: string } | null)?.type;
  if (type === LIMIT_ERRORS.cost) return "cost";
  return type === LIMIT_ERRORS.deadline ? "deadline" : "steps";
}
