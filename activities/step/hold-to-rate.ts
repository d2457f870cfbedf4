/** Holds requests to the rate limits of their model: a request that does not fit is retried later, and takes no slot until then. */
import {
  RATE_WORDS,
  strictest,
  rateRefusal,
  type RateRefusal,
  type ModelTarget,
} from "../config/model-target.ts";
import { rateOf } from "../config/operator-policy.ts";
import { retryable } from "../contract/failures.ts";
import type { StepUsage } from "../contract/activities.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { appendEvents } from "../store/events.ts";
import { OPEN_MS, renew, reserve, settle } from "../store/rates.ts";
import type { Session } from "../store/sessions.ts";

/** The longest random delay of a retry, so that requests that wait for the same minute do not all come at once. */
const SPREAD_MS = 2_000;

export interface RateHolder {
  readonly deps: Pick<AgentDeps, "store" | "policy">;
  readonly scope: Pick<ActivityScope, "attempt" | "waits" | "waited">;
  readonly session: Pick<Session, "id" | "epoch">;
  readonly step: number;
}

/** Ends a request. @param usage as the provider reported it, if it did */
export type Settle = (usage?: StepUsage) => Promise<void>;

/**
 * Reserves the tokens that a request may take.
 * @throws ModelThrottled (retryable, when it may fit) if a limit is used up
 */
export async function holdToRate(
  { deps, scope, session, step }: RateHolder,
  target: ModelTarget,
  tokens: number,
): Promise<Settle> {
  const rate = strictest(rateOf(deps.policy, target.model), target.rate);
  if (rate === undefined) return () => Promise.resolve();
  const { db } = deps.store;
  const reservation = { sessionId: session.id, key: keyOf(target), tokens };
  const reserved = await reserve(db, reservation, (use) => rateRefusal(rate, use, tokens, scope.waits));
  if ("refusal" in reserved) {
    const { limit } = reserved.refusal;
    const waitMs = Math.round(reserved.refusal.waitMs + Math.random() * SPREAD_MS);
    if (scope.waits === 0) {
      const event = { type: "llm:throttled", step, attempt: scope.attempt, data: { waitMs, limit } } as const;
      await appendEvents(db, session.id, session.epoch, [event]);
    }
    scope.waited();
    throw refused(target, { limit, waitMs }, rate[limit]);
  }
  const renewal = setInterval(() => void renew(db, reserved).catch(() => undefined), OPEN_MS / 3).unref();
  return async (usage) => {
    clearInterval(renewal);
    // If Postgres is unreachable, the reservation expires by itself.
    await settle(db, reserved, usage && usage.input + usage.output).catch(() => undefined);
  };
}

/** The key under which a provider counts requests: the model, for all users of the API key. */
function keyOf({ model, provider }: ModelTarget): string {
  return `${model} ${provider.keyEnv ?? ""}`.trim();
}

function refused({ model }: ModelTarget, { limit, waitMs }: RateRefusal, most = 0) {
  const seconds = Math.ceil(waitMs / 1_000);
  return retryable(
    "ModelThrottled",
    `${model} may be asked ${most} ${RATE_WORDS[limit]}, and that is used up (rate.${limit}). Nothing was asked; it is tried again in ${seconds} s.`,
    { delayMs: waitMs },
  );
}
