/** What a session has cost against its limit. */
import { lostRates } from "../config/cost.ts";
import type { RunPolicy } from "../contract/run-policy.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import type { NewEvent } from "../store/event.ts";
import { recordLostCalls, spentUsd } from "../store/model-calls.ts";
import type { Session } from "../store/sessions.ts";
import { loadConfig } from "../store/stored-config.ts";
import type { StepContext } from "./step-context.ts";

interface Spent {
  readonly before: number;
  readonly after: number;
}

/** USD of the session before and with this answer; undefined if nothing limits it. */
export async function spentWith({ deps, session }: StepContext, costUsd: number): Promise<Spent | undefined> {
  if (session.config.limits.maxCostUsd === undefined) return undefined;
  const before = await spentUsd(deps.store.db, session.id);
  return { before, after: before + costUsd };
}

/** Like `spentWith`, plus the requests that earlier attempts lost with their workers. Call it after this answer is stored. */
export async function withLost({ deps, session }: StepContext): Promise<number> {
  // Read the stored configuration: `session.config` may have a fallback model here.
  const own = await loadConfig(deps.store.db, session.id);
  await recordLostCalls(deps.store.db, session.id, lostRates(own ?? session.config));
  return spentUsd(deps.store.db, session.id);
}

/** The limit of a delegate as it is now: an answer to its parent's question may have raised it since the step began. */
export async function raisedLimit(
  { store }: Pick<AgentDeps, "store">,
  { id, parentId, config }: Session,
): Promise<Pick<RunPolicy, "maxCostUsd">> {
  if (parentId === undefined || config.limits.maxCostUsd === undefined) return {};
  const { maxCostUsd } = ((await loadConfig(store.db, id)) ?? config).limits;
  return maxCostUsd === undefined ? {} : { maxCostUsd };
}

/** Share of the limit at which people are warned. Source: ours, as budget alarms usually do. */
const NEAR = 0.8;

export function nearLimit({ session, input }: StepContext, spent: Spent | undefined): NewEvent[] {
  const { maxCostUsd } = session.config.limits;
  if (spent === undefined || maxCostUsd === undefined) return [];
  if (spent.before >= NEAR * maxCostUsd || spent.after < NEAR * maxCostUsd) return [];
  const data = { limit: "cost", used: spent.after, max: maxCostUsd } as const;
  return [{ type: "limit:near", step: input.step, data }];
}

/** For the Web UI, which shows the sum. Rounded, since it stands in the history. */
export function costFacts(sessionUsd: number | undefined, stepUsd: number | null | undefined) {
  if (sessionUsd !== undefined) return { costUsd: sessionUsd };
  return stepUsd == null ? {} : { stepCostUsd: Number(stepUsd.toFixed(6)) };
}
