/** Which model makes the next step, if the session has fallback models. Pure. */
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import type { ModelStepInput } from "../activities/contract/activities.ts";
import type { AgentState } from "./agent-state.ts";

type Asked = Pick<ModelStepInput, "fallback" | "hasFallback" | "switched">;

/** The field of a step's input that names the fallback model. Empty if there is none, as in old histories. */
export function askedModel(
  state: Pick<AgentState, "fallback" | "switched">,
  policy: RunPolicy | undefined,
): Asked {
  const index = state.fallback?.index ?? 0;
  return {
    ...(index > 0 ? { fallback: index } : {}),
    ...(index < (policy?.fallbacks ?? 0) ? { hasFallback: true as const } : {}),
    ...(state.switched === undefined ? {} : { switched: state.switched }),
  };
}

/** The asked model's provider failed: the next one of the list. */
export function stepIn(state: Pick<AgentState, "fallback" | "switched">, nowMs: number): void {
  state.fallback = { index: (state.fallback?.index ?? 0) + 1, sinceMs: nowMs };
  state.switched = "fallback";
}

/** After a while the session's own model is asked again: its outage may be over. */
export function returnIfDue(
  state: Pick<AgentState, "fallback" | "switched">,
  policy: Pick<RunPolicy, "returnAfterMs">,
  nowMs: number,
): void {
  if (state.fallback === undefined || policy.returnAfterMs === undefined) return;
  if (nowMs - state.fallback.sinceMs < policy.returnAfterMs) return;
  state.fallback = undefined;
  state.switched = "return";
}
