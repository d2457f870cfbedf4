/** Holds requests to the operator's budgets: the most that one may cost is reserved before it is sent. */
import { dearestUsd } from "../config/cost.ts";
import { budgetsFor, type MoneyBudget } from "../config/money-budgets.ts";
import type { ModelTarget } from "../config/model-target.ts";
import { fatal } from "../contract/failures.ts";
import { spentText, type ReachedLimit } from "../contract/limits.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import {
  findSpender,
  hasReservedMoney,
  type MoneyRefusal,
  releaseMoney,
  reserveMoney,
  toWindow,
} from "../store/budgets.ts";
import { appendEvents } from "../store/events.ts";
import type { Session } from "../store/sessions.ts";
import { usd } from "../text/format.ts";
import { recordLost } from "./budget.ts";
import type { RateHolder } from "./hold-to-rate.ts";

/** Why nothing was asked, with the budget and until when; and the question whether the session may go on nevertheless. */
export interface OverBudget {
  readonly overBudget: string;
  readonly asks: ReachedLimit & { readonly offer: number };
}

/** Called if the request ended without a bill; a bill ends the reservation by itself. */
type Release = () => Promise<void>;

interface BudgetHolder extends RateHolder {
  readonly session: Pick<Session, "id" | "epoch" | "config">;
}

/** For a request that is refused after its money was reserved. */
export const givingBack =
  (release: Release) =>
  async (error: unknown): Promise<never> => {
    await release();
    throw error;
  };

/** @throws PolicyRefused (fatal) for a model without a price, under a budget that counts money */
export async function holdToBudgets(
  { deps, scope, session, step }: BudgetHolder,
  target: ModelTarget,
  tokens: { readonly input: number; readonly output: number },
): Promise<Release | OverBudget> {
  const budgets = await budgetsOf(deps, session.id);
  if (budgets.length === 0) return () => Promise.resolve();
  const most = dearestUsd(target, tokens);
  const counted = most === null ? budgets.filter(({ unpriced }) => unpriced === "refuse") : budgets;
  if (most === null && counted.length > 0 && target.provider.name !== "rehearsal") {
    const message = `${session.id} is held to a budget (${counted.map(({ scope: whose }) => whose).join("; ")}), and the price of ${target.model} is not known. Give it a price (models.${target.model}.price), or allow it in the policy (budgets[].unpriced: allow).`;
    throw fatal("PolicyRefused", message);
  }
  if (most === null) return () => Promise.resolve();
  const { db } = deps.store;
  // A request of this session that never was billed: it may have been charged, so it is counted before the next one is reserved.
  if (await hasReservedMoney(db, session.id)) await recordLost(deps, session);
  const reserved = await reserveMoney(db, { sessionId: session.id, model: target.model, usd: most }, counted);
  if ("refused" in reserved) return overBudget(reserved.refused, most);
  await appendEvents(
    db,
    session.id,
    session.epoch,
    reserved.near.map(({ budget, usedUsd }) => ({
      type: "limit:near" as const,
      step,
      attempt: scope.attempt,
      data: { limit: "budget" as const, used: usedUsd, max: budget.limitUsd, scope: budget.scope },
    })),
  );
  // If Postgres is unreachable, the reservation is given up in time.
  return () => releaseMoney(db, reserved).catch(() => undefined);
}

async function budgetsOf(
  { store, policy }: Pick<AgentDeps, "store" | "policy">,
  id: string,
): Promise<MoneyBudget[]> {
  const { budgets = [] } = policy ?? {};
  if (budgets.length === 0) return [];
  const spender = await findSpender(store.db, id);
  return spender === undefined ? [] : budgetsFor(budgets, spender, spender.today);
}

/** Of a budget that is offered to a session beyond it. Chosen: as much as its usual last warning leaves, half of that. */
const OFFERED_SHARE = 0.1;

function overBudget({ budget, usedUsd, allowance }: MoneyRefusal, nextUsd: number): OverBudget {
  const { scope, before, limitUsd } = budget;
  const spent = {
    scope,
    window: toWindow(budget),
    before,
    nextUsd,
  };
  const reached = { limit: "budget", used: usedUsd, of: limitUsd, budget: spent } as const;
  const allowed =
    allowance === undefined
      ? ""
      : ` This session was allowed ${usd(allowance.usd)} beyond it, and has used ${usd(allowance.usedUsd)} of that.`;
  // No less than the next request needs: else the question would return at once.
  const leastUsd = nextUsd + Math.max(0, (allowance?.usedUsd ?? 0) - (allowance?.usd ?? 0));
  const offer = Math.ceil(Math.max(limitUsd * OFFERED_SHARE, leastUsd) * 100) / 100;
  return { overBudget: `${spentText(reached, spent)}${allowed}`, asks: { ...reached, offer } };
}
