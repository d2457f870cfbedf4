/** The session as a step sees it: with the fallback model if one stands in for the session's own. */
import { withFallback } from "../config/asked-model.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { loadRatio } from "../store/model-calls.ts";
import type { Session } from "../store/sessions.ts";

/** @param fallback index in the list of fallback models, from 1; undefined: the session's own model */
export async function withAskedModel(
  { store }: Pick<AgentDeps, "store">,
  session: Session,
  fallback: number | undefined,
): Promise<Session> {
  const config = withFallback(session.config, fallback);
  if (config === session.config) return session;
  return { ...session, config, tokenRatio: await loadRatio(store.db, config.model) };
}
