/** Which work goes first if the workers are at capacity. */
import { z } from "zod";
import type { Precedence } from "../contract/run-policy.ts";

/** The lowest priority. Source: Temporal's default of five. */
export const LAST_PRIORITY = 5;
/** The priority of sessions that set none. Source: Temporal's default. */
export const USUAL_PRIORITY = 3;
/** One of Temporal's five priorities: 1 goes first. */
export const prioritySchema = z.number().int().min(1).max(LAST_PRIORITY);
/** The tenant that a session works for: tenants take turns. Temporal accepts 64 bytes. */
export const tenantSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
  error: "begins with a letter or digit and has at most 64 letters, digits, dots, dashes and underscores",
});

/**
 * Options for starting a run of the session; undefined if its settings have none. Values that Temporal would refuse
 * are left out, whoever stored them: a workflow that starts sessions would otherwise fail its task forever.
 */
export function toPrecedence(settings: {
  readonly priority?: number | undefined;
  readonly tenant?: string | undefined;
}): Precedence | undefined {
  const { data: priority } = prioritySchema.safeParse(settings.priority);
  const { data: tenant } = tenantSchema.safeParse(settings.tenant);
  if (priority === undefined && tenant === undefined) return undefined;
  return {
    priorityKey: priority,
    fairnessKey: tenant,
  };
}
