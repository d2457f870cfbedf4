/** Holds requests to the operator's budgets: the most that one may cost is reserved before it is sent. */
import { costUsd } from "../config/cost.ts";
import { budgetsFor, type MoneyBudget } from "../config/money-budgets.ts";
import type { ModelTarget } from "../config/model-target.ts";
import { fatal } from "../contract/failures.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { type MoneyRefusal, releaseMoney, reserveMoney, findSpender } from "../store/budgets.ts";
import { appendEvents } from "../store/events.ts";
import type { Session } from "../store/sessions.ts";
import { usd } from "../text/format.ts";

interface BudgetHolder {
  readonly deps: Pick<AgentDeps, "store" | "policy">;
  readonly scope: Pick<ActivityScope, "attempt">;
  readonly session: Pick<Session, "id" | "epoch">;
  readonly step: number;
}

/** Why nothing was asked, with the budget and until when. */
export interface OverBudget {
  readonly overBudget: string;
}

/** Called if the request ended without a bill; a bill ends the reservation by itself. */
type Release = () => Promise<void>;

/** @throws PolicyRefused (fatal) for a model without a price, under a budget that counts money */
export async function holdToBudgets(
  { deps, scope, session, step }: BudgetHolder,
  target: ModelTarget,
  tokens: { readonly input: number; readonly output: number },
): Promise<Release | OverBudget> {
  const budgets = await budgetsOf(deps, session.id);
  if (budgets.length === 0) return () => Promise.resolve();
  const most = costUsd(target.price, { ...tokens, cached: 0 }, target);
  const counted = most === null ? budgets.filter(({ unpriced }) => unpriced === "refuse") : budgets;
  if (most === null && counted.length > 0 && target.provider.name !== "rehearsal") {
    const message = `${session.id} is held to a budget (${counted.map(({ scope: whose }) => whose).join("; ")}), and the price of ${target.model} is not known. Give it a price (models.${target.model}.price), or allow it in the policy (budgets[].unpriced: allow).`;
    throw fatal("PolicyRefused", message);
  }
  if (most === null) return () => Promise.resolve();
  const { db } = deps.store;
  const reserved = await reserveMoney(db, { sessionId: session.id, model: target.model, usd: most }, counted);
  if ("refused" in reserved) return { overBudget: overText(reserved.refused, most) };
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

function overText({ budget, usedUsd }: MoneyRefusal, most: number): string {
  return `The budget for ${budget.scope} is ${usd(budget.limitUsd)}; ${usd(usedUsd)} of it are used or reserved, and the next request may cost ${usd(most)}. It begins anew on ${budget.before}.`;
}
