/** Whose work goes first if there is more than the workers take at once. Pure. */
import { z } from "zod";
import type { Precedence } from "../contract/precedence.ts";

/** The one that goes last. Source: Temporal's default of five. */
export const LAST_PRIORITY = 5;
/** Of sessions that set none. Source: Temporal's default. */
export const USUAL_PRIORITY = 3;
/** Of Temporal's five: 1 goes first. */
export const prioritySchema = z.number().int().min(1).max(LAST_PRIORITY);
/** For whom a session works: tenants take turns. Temporal takes 64 bytes. */
export const tenantSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
  error: "begins with a letter or digit and has at most 64 letters, digits, dots, dashes and underscores",
});

/**
 * Options for starting a run of the session; undefined if its settings have none. What Temporal would refuse is left out, whoever
 * stored it: a workflow that starts sessions would fail its task forever.
 */
export function precedenceOf(settings: {
  readonly priority?: number | undefined;
  readonly tenant?: string | undefined;
}): Precedence | undefined {
  const { data: priority } = prioritySchema.safeParse(settings.priority);
  const { data: tenant } = tenantSchema.safeParse(settings.tenant);
  if (priority === undefined && tenant === undefined) return undefined;
  return {
    ...(priority === undefined ? {} : { priorityKey: priority }),
    ...(tenant === undefined ? {} : { fairnessKey: tenant }),
  };
}
