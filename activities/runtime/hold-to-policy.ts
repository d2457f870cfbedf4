/** Checks a session against the operator's policy: when a run opens it, and at each request to a model. */
import type { Precedence } from "../contract/run-policy.ts";
import { fatal } from "../contract/failures.ts";
import { modelRefusal, policyRefusal, type PolicyRefusal } from "../config/operator-policy.ts";
import { sandboxSpec } from "../sandbox/sandbox-host.ts";
import { findSandbox } from "../store/sandboxes.ts";
import { othersOfOwner, type Session } from "../store/sessions.ts";
import type { AgentDeps } from "./deps.ts";

/**
 * Before anything is paid for.
 * @param precedence the run's precedence in Temporal
 * @throws PolicyRefused (fatal) that names the rule; SandboxRefused, ImageMissing (fatal) for an image that cannot be a sandbox
 */
export async function holdToStart(
  deps: AgentDeps,
  session: Session,
  precedence: Precedence | undefined,
): Promise<void> {
  await holdToPolicy(deps, session, precedence);
  await holdToKeys(deps, session);
  await deps.sandboxHost.refuseUnfit?.(sandboxSpec(session));
}

/**
 * A session names keys that the worker has, and could use: later ones that are removed are told when a sandbox is opened without them.
 * @throws PolicyRefused (fatal)
 */
async function holdToKeys({ keys, store }: AgentDeps, { id, config, parentId }: Session): Promise<void> {
  const { keys: named = [], network, container } = config.sandbox;
  // A delegate has what its parent named.
  if (named.length === 0 || parentId !== undefined) return;
  const where =
    container === undefined ? `sandbox.network is ${network}` : "the sandbox is another person's container";
  if (container !== undefined || network === "none")
    throw refused(id, { rule: "keys", why: `sandbox.keys has ${named.join(", ")}, and ${where}` });
  const unknown = named.find((name) => !Object.hasOwn(keys?.definitions ?? {}, name));
  if (unknown === undefined || (await findSandbox(store.db, id)) !== undefined) return;
  const known = Object.keys(keys?.definitions ?? {}).join(", ") || "none";
  throw refused(id, { rule: "keys", why: `sandbox.keys has ${unknown}, and this worker has: ${known}` });
}

/** A delegate is not checked: it has what its parent was allowed. */
async function holdToPolicy(
  { policy, store }: AgentDeps,
  session: Session,
  precedence: Precedence | undefined,
): Promise<void> {
  if (policy === undefined || session.parentId !== undefined) return;
  const refusal = policyRefusal(policy, session.config, precedence);
  if (refusal !== undefined) throw refused(session.id, refusal);
  const most = policy.max.sessionsPerUser;
  if (most === undefined || (await othersOfOwner(store.db, session)) < most) return;
  const who = session.owner ?? "people who are not named";
  const why = `${who} may have ${most} at once, and that many are running`;
  throw refused(session.id, { rule: SESSIONS, why });
}

/**
 * Checks each request against the rule on models: a person may change the model of a running session, and a delegate may have
 * a model of its own.
 * @throws PolicyRefused (fatal) that names the rule
 */
export function holdToModels(
  { policy }: Pick<AgentDeps, "policy">,
  { id, config }: Pick<Session, "id" | "config">,
): void {
  const refusal = policy && modelRefusal(policy, config);
  if (refusal !== undefined) throw refused(id, refusal);
}

const SESSIONS = "max.sessionsPerUser";

function refused(id: string, refusal: PolicyRefusal) {
  const { rule, why } = refusal;
  return fatal(
    "PolicyRefused",
    `The operator's policy refuses this session (${rule}): ${why}. Nothing more was asked or run, and what there was is kept. ${wayOn(id, refusal)}`,
  );
}

/** A session's settings stay, apart from its model. */
function wayOn(id: string, { rule, isOwnModel }: PolicyRefusal): string {
  const goOn = `longhaul say ${id} "go on"`;
  if (rule === SESSIONS) return `When one of them has ended: ${goOn}`;
  if (isOwnModel)
    return `Go on with a model that is allowed: longhaul say ${id} "go on" --model PROVIDER/MODEL`;
  return `Start the task again with a setting that is allowed. If the operator changes the rule instead: ${goOn}`;
}
