/** A provider that does not show what the model thinks: reported to people once a session. */
import type { ModelAnswer } from "../model/model.ts";
import { wasReported } from "../store/events.ts";
import type { StepContext } from "./step-context.ts";

export async function refusalNews({ deps, session }: StepContext, { summaryRefused }: ModelAnswer) {
  if (summaryRefused !== true || (await wasReported(deps.store.db, session.id, "summaryRefused"))) return {};
  return { summaryRefused } as const;
}
