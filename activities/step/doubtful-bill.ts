/** Usage figures that cannot be true: they are recorded but not used, and people are informed once a session. */
import { log } from "@temporalio/activity";
import type { ModelAnswer } from "../model/model.ts";
import { wasReported } from "../store/reported.ts";
import { recentCalls } from "../store/reading.ts";
import { areDoubtful, isSuspicious, JUDGED_CALLS } from "../transcript/size.ts";
import type { StepContext } from "./step-context.ts";

export interface Doubt {
  /** The usage is listed but not used in calculations. */
  readonly isDoubtful: boolean;
  /** No one was informed before. */
  readonly isNews: boolean;
}

const NONE: Doubt = { isDoubtful: false, isNews: false };

/** Reads the earlier usage rows only if this answer's usage looks doubtful. */
export async function doubtOf(step: StepContext, { usage }: ModelAnswer): Promise<Doubt> {
  const { deps, session, size, input } = step;
  if (usage === undefined) return NONE;
  const call = { estimated: size.next.tokens, actual: usage.input };
  if (!isSuspicious(call, size.pureTokens)) return NONE;
  const { model } = session.config;
  const before = await recentCalls(deps.store.db, session.id, JUDGED_CALLS - 1, model);
  if (!areDoubtful([call, ...before])) return NONE;
  if (await wasReported(deps.store.db, session.id, "usageDoubtful"))
    return { isDoubtful: true, isNews: false };
  log.warn(
    "the provider's token counts contradict ours; the estimate is used. A count that stays low while the session grows means that the server cuts requests to its own window: longhaul doctor shows it",
    { model, step: input.step, billedTokens: usage.input, countedTokens: size.pureTokens },
  );
  return { isDoubtful: true, isNews: true };
}
