/**
 * The activities of a batch's workflow: items become sessions in turn, and are settled when their sessions have ended.
 *
 * Idempotency key: the batch, which is the workflow's, and the item. Side effects: rows of sessions, of items and of the batch;
 * cancels of sessions. Heartbeat: by timer. Retry class: Postgres, Temporal. Cancel: nothing to undo.
 */
import { toPrecedence } from "../config/precedence.ts";
import { inScope } from "../runtime/activity-scope.ts";
import {
  batchOfWorkflow,
  type BatchActivities,
  type BatchLook,
  type LookAtBatchInput,
  type TakenItem,
  batchStatus,
} from "../contract/batch.ts";
import { shorten } from "../text/cut.ts";
import { fatal } from "../contract/failures.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { makeOrAdopt } from "../store/adopt-session.ts";
import {
  batchFigures,
  beginItem,
  endBatch,
  findBatch,
  itemFiles,
  nextItems,
  refuseItem,
  settleItems,
  type Batch,
  type NextItem,
} from "../store/batches.ts";
import type { AttemptDelivery, ChosenAttempt } from "../contract/attempts.ts";
import { bestAttempt } from "../contract/attempts.ts";
import { toVerifyPolicy } from "../config/verify-settings.ts";
import {
  attemptsOrder,
  chosenAttempt,
  hasPassed,
  listAttempts,
  recordChosen,
  type StoredAttempt,
} from "../store/attempts.ts";
import { listPublications, toDeliveryState } from "../store/repositories.ts";
import type { Queryable } from "../store/db.ts";

const ABOUT_CHARS = 80;
/** How late a person sees that a session waits. Chosen; ends are reported by Temporal. */
const LOOK_MS = 60_000;

export function createBatchActivities(deps: AgentDeps): BatchActivities {
  const { db } = deps.store;
  return {
    lookAtBatch: (input) =>
      inScope(deps, ({ sessionId }) => batchLook(deps, batchOfWorkflow(sessionId), input)),
    takeBatchItems: (input) =>
      inScope(deps, async ({ sessionId }) => {
        const batch = await requireBatch(db, batchOfWorkflow(sessionId));
        const begunItems: TakenItem[] = [];
        for (let { after } = input; begunItems.length < input.count;) {
          const items = await nextItems(db, batch.id, { after, count: input.count - begunItems.length });
          if (items.length === 0) break;
          after = items.at(-1)?.ordinal ?? after;
          for (const item of items) begunItems.push(...(await begin(deps, batch, item)));
        }
        return begunItems;
      }),
    chooseAttempt: () =>
      inScope(deps, async ({ sessionId }) =>
        chooseAttempt(db, await requireBatch(db, batchOfWorkflow(sessionId))),
      ),
    closeBatch: ({ reason, undelivered }) =>
      inScope(deps, async ({ sessionId }) => {
        const id = batchOfWorkflow(sessionId);
        const figures = await batchFigures(db, id);
        const chosen = chosenAttempt(await requireBatch(db, id));
        const status =
          chosen === undefined
            ? batchStatus(reason, figures)
            : await statusOfChosen(db, chosen, undelivered === true);
        await endBatch(db, id, status);
        return { status, ...figures };
      }),
  };
}

async function requireBatch(db: Queryable, id: string): Promise<Batch> {
  const batch = await findBatch(db, id);
  if (batch === undefined)
    throw fatal(
      "BadConfiguration",
      `There is no batch ${id}. Start it with: longhaul batch FILE --name ${id}`,
    );
  return batch;
}

/** Idempotent: the choice is recorded, and made again from the same facts. */
async function chooseAttempt(db: Queryable, batch: Batch): Promise<AttemptDelivery | undefined> {
  const { deliver: deliveryOrder } = attemptsOrder(batch) ?? {};
  const attempts = await listAttempts(db, batch.id);
  const policy = toVerifyPolicy(attempts[0]?.config.verify);
  const chosen = bestAttempt(attempts.map(toFacts), policy);
  const best = attempts.find(({ sessionId }) => sessionId === chosen?.sessionId);
  if (chosen === undefined || best === undefined) return undefined;
  await recordChosen(db, batch.id, chosen);
  const { isUnverified = false, outcome, sessionId } = chosen;
  const isHeld = isUnverified && (policy?.holds === true || outcome === "changed-checks");
  if (deliveryOrder === undefined || isHeld) return undefined;
  const { tree } = best;
  const verified = { outcome, tree };
  const asDraft = isUnverified && deliveryOrder.pr === "ready" ? ({ pr: "draft" } as const) : {};
  const sameFiles = isUnverified || tree === "" ? {} : { tree };
  return {
    sessionId,
    deliver: {
      order: { ...deliveryOrder, ...asDraft, ...sameFiles },
      outcome: { status: "completed", verified },
    },
  };
}

const toFacts = ({ config: _config, tree: _tree, ...attempt }: StoredAttempt) => attempt;

async function statusOfChosen(
  db: Queryable,
  { sessionId, isUnverified }: ChosenAttempt,
  undelivered: boolean,
): Promise<"completed" | "failed"> {
  const isRefused = toDeliveryState(await listPublications(db, sessionId)) === "refused";
  return isUnverified === true || undelivered || isRefused ? "failed" : "completed";
}

async function batchLook(
  deps: AgentDeps,
  id: string,
  { open, cancel }: LookAtBatchInput,
): Promise<BatchLook> {
  const { db } = deps.store;
  const batch = await requireBatch(db, id);
  const { concurrency, stopAfter, maxCostUsd } = batch;
  const attemptsWanted = attemptsOrder(batch);
  if (cancel === true) for (const sessionId of open) await deps.sessionRuns.cancel(sessionId);
  const endedItems = await settleItems(db, id, open);
  return {
    ended: endedItems,
    figures: await batchFigures(db, id),
    concurrency,
    lookMs: deps.delegateLookMs ?? LOOK_MS,
    stopAfter: stopAfter ?? undefined,
    maxCostUsd: maxCostUsd ?? undefined,
    chooses: attemptsWanted === undefined ? undefined : true,
    decided: (attemptsWanted?.first === true && (await hasPassed(db, id))) || undefined,
    searchAttributes: deps.searchAttributes || undefined,
  };
}

/**
 * Makes the session of an item, which costs at most what is left for all of them.
 * @returns nothing for an item that failed, because its session's id belongs to another session
 */
async function begin({ store, sanitizer }: AgentDeps, batch: Batch, item: NextItem): Promise<TakenItem[]> {
  const { itemId, ordinal, sessionId, start, isBegun } = item;
  if (start !== null) {
    const config = await withinBudget(store.db, batch, start.config);
    const workspace = await itemFiles(store.db, batch.id, itemId);
    // Taken from the batch's row: there Postgres checks the owner against the role that wrote it.
    const owner = batch.owner ?? undefined;
    const session = { ...start, id: sessionId, config, owner, workspace };
    if (!(await makeOrAdopt(store, session, true))) {
      await refuseItem(store.db, batch.id, itemId, "IdTaken");
      return [];
    }
    await beginItem(store.db, batch.id, itemId);
  } else if (item.config === null) {
    await refuseItem(store.db, batch.id, itemId, "IdTaken");
    return [];
  }
  const precedence = toPrecedence(start?.config ?? item.config ?? {});
  const [line = ""] = (start?.task ?? itemId).trim().split("\n", 1);
  return [
    {
      ordinal,
      sessionId,
      about: sanitizer.clean(shorten(line, ABOUT_CHARS)),
      precedence,
      begun: isBegun || undefined,
    },
  ];
}

async function withinBudget<Config extends NonNullable<NextItem["start"]>["config"]>(
  db: Queryable,
  { id, maxCostUsd }: Batch,
  config: Config,
): Promise<Config> {
  if (maxCostUsd === null) return config;
  const { costUsd } = await batchFigures(db, id);
  const { maxCostUsd: ownLimit = maxCostUsd } = config.limits;
  // Nothing starts once it is spent; the settings allow no limit of 0.
  const remainingUsd = Math.max(maxCostUsd - costUsd, Number.MIN_VALUE);
  return { ...config, limits: { ...config.limits, maxCostUsd: Math.min(ownLimit, remainingUsd) } };
}
