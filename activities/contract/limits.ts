/** The limits at which a run ends in order: `max_steps` is the status of each. Pure. */

export type Limit = "steps" | "cost" | "deadline";

/** How a session's row says which limit it was; of the steps it says nothing. */
export const LIMIT_ERRORS = { cost: "CostLimit", deadline: "DeadlineLimit" } as const;

/** Which limit ended a session; undefined if none did. */
export function limitOf(status: string, error: unknown): Limit | undefined {
  if (status !== "max_steps") return undefined;
  const type = (error as { readonly type?: string } | null)?.type;
  if (type === LIMIT_ERRORS.cost) return "cost";
  return type === LIMIT_ERRORS.deadline ? "deadline" : "steps";
}
