/** Checks a session against the operator's policy: when a run opens it, and at each request to a model. */
import type { Precedence } from "../contract/precedence.ts";
import { fatal } from "../contract/failures.ts";
import { modelRefusal, policyRefusal } from "../config/operator-policy.ts";
import { othersOfOwner, type Session } from "../store/sessions.ts";
import type { AgentDeps } from "./deps.ts";

/**
 * A delegate is not checked: it has what its parent was allowed.
 * @param precedence the run's precedence in Temporal
 * @throws PolicyRefused (fatal) that names the rule
 */
export async function holdToPolicy(
  { policy, store }: AgentDeps,
  session: Session,
  precedence: Precedence | undefined,
): Promise<void> {
  if (policy === undefined || session.parentId !== undefined) return;
  const refusal = policyRefusal(policy, session.config, precedence);
  if (refusal !== undefined) throw refused(refusal.rule, refusal.why);
  const most = policy.max.sessionsPerUser;
  if (most === undefined || (await othersOfOwner(store.db, session)) < most) return;
  const who = session.owner ?? "people who are not named";
  throw refused("max.sessionsPerUser", `${who} may have ${most} at once, and that many are running`);
}

/**
 * Checks each request against the rule on models: a person may change the model of a running session, and a delegate may have
 * a model of its own.
 * @throws PolicyRefused (fatal) that names the rule
 */
export function holdToModels(
  { policy }: Pick<AgentDeps, "policy">,
  { config }: Pick<Session, "config">,
): void {
  const refusal = policy && modelRefusal(policy, config);
  if (refusal !== undefined) throw refused(refusal.rule, refusal.why);
}

const refused = (rule: string, why: string) =>
  fatal(
    "PolicyRefused",
    `The operator's policy refuses this session (${rule}): ${why}. Nothing was asked or run for it, and what there was is kept.`,
  );
