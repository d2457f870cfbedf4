/** Usage and cost: one row per request to a provider, kept or wasted, and how accurate the estimates were. */
import { and, asc, eq, gt, inArray, lt, sql } from "drizzle-orm";
import { alias, type AnyPgColumn } from "drizzle-orm/pg-core";
import { learnRatio, type TokenRatio } from "../contract/request-size.ts";
import type { SessionBill } from "../config/cost.ts";
import type { StepUsage } from "../contract/activities.ts";
import type { Queryable } from "./db.ts";
import { events, modelCalls, sessions, tokenRatios } from "./schema/index.ts";
import { insertFrom, part } from "./statements.ts";

export interface ModelCallRow {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly attempt: number;
  readonly purpose: "step" | "summary";
  readonly model: string;
  readonly status: "kept" | "wasted";
  /** How the answer ended; for a wasted request the kind of failure. */
  readonly finish?: string;
  readonly error?: string;
  readonly estimatedInput: number;
  readonly estimatePure: boolean;
  readonly usage: StepUsage | undefined;
  /** USD; null or absent if it is not known. */
  readonly costUsd?: number | null;
  readonly firstTokenMs?: number;
  readonly durationMs?: number;
}

/**
 * Whether the session's newest request is so old that the provider's cache has expired. False if there was no request.
 * @param seconds for which the provider caches a request's prefix
 */
export async function isCacheExpired(db: Queryable, sessionId: string, seconds: number): Promise<boolean> {
  const [row] = await db
    .select({
      expired: sql<boolean>`max(${modelCalls.createdAt}) < now() - make_interval(secs => ${seconds})`,
    })
    .from(modelCalls)
    .where(eq(modelCalls.sessionId, sessionId));
  return row?.expired === true;
}

const usageValues = (usage: StepUsage | undefined) =>
  usage && {
    inputTokens: usage.input,
    cachedTokens: usage.cached,
    cacheWriteTokens: usage.cacheWrite ?? null,
    outputTokens: usage.output,
    reasoningTokens: usage.reasoning,
  };

/** Times are stored in whole ms. */
export async function recordCall(
  db: Queryable,
  { usage, firstTokenMs, durationMs, ...row }: ModelCallRow,
): Promise<void> {
  await db.insert(modelCalls).values({
    ...row,
    firstTokenMs: firstTokenMs === undefined ? undefined : Math.round(firstTokenMs),
    durationMs: durationMs === undefined ? undefined : Math.round(durationMs),
    ...usageValues(usage),
  });
}

/** Records a request of a step that was for nothing; if it counts as lost already, its bill replaces that estimate. */
export async function recordWastedCall(db: Queryable, row: ModelCallRow): Promise<void> {
  const { sessionId, epoch, step, attempt, model } = row;
  const isEstimate = and(
    eq(modelCalls.sessionId, sessionId),
    eq(modelCalls.epoch, epoch),
    eq(modelCalls.step, step),
    eq(modelCalls.attempt, attempt),
    eq(modelCalls.model, model),
    eq(modelCalls.purpose, "step"),
    eq(modelCalls.error, LOST),
  );
  const { finish, error, usage, costUsd } = row;
  const replaced = await db
    .update(modelCalls)
    .set({ finish, error, costUsd, ...usageValues(usage) })
    .where(isEstimate)
    .returning({ id: modelCalls.id });
  if (replaced.length === 0) await recordCall(db, row);
}

const LOST = "Nothing of the answer was kept: its worker ended before it was stored.";

/**
 * Whether an earlier request for this step to the same model failed in the same way.
 * @param at.attempt if given, only earlier attempts of the activity count
 */
export async function hasEarlierCall(
  db: Queryable,
  at: Pick<ModelCallRow, "sessionId" | "epoch" | "step" | "model"> & { readonly attempt?: number },
  finish: string,
): Promise<boolean> {
  const rows = await db
    .select({ attempt: modelCalls.attempt })
    .from(modelCalls)
    .where(
      and(
        eq(modelCalls.sessionId, at.sessionId),
        eq(modelCalls.epoch, at.epoch),
        eq(modelCalls.step, at.step),
        eq(modelCalls.purpose, "step"),
        eq(modelCalls.status, "wasted"),
        eq(modelCalls.finish, finish),
        eq(modelCalls.model, at.model),
        ...(at.attempt === undefined ? [] : [lt(modelCalls.attempt, at.attempt)]),
      ),
    )
    .limit(1);
  return rows.length > 0;
}

/** Whether the model has answered a request of the session that was larger than so many tokens, by its provider's count. */
export async function hasLargerAnswer(
  db: Queryable,
  { sessionId, model }: Pick<ModelCallRow, "sessionId" | "model">,
  tokens: number,
): Promise<boolean> {
  const rows = await db
    .select({ input: modelCalls.inputTokens })
    .from(modelCalls)
    .where(
      and(
        eq(modelCalls.sessionId, sessionId),
        eq(modelCalls.model, model),
        eq(modelCalls.status, "kept"),
        gt(modelCalls.inputTokens, tokens),
      ),
    )
    .limit(1);
  return rows.length > 0;
}

/** The assumed price of one token of a lost request's input; undefined if the model's price is not known. */
export interface LostRate {
  readonly model: string;
  readonly usdPerToken: number | undefined;
}

/**
 * Records as wasted the requests that were sent and never billed because their worker was killed or stopped before it could
 * report them. Each request is announced by a `step:started`, and its model by the `llm:thinking` after it. Idempotent. To be
 * called when no request of the session is in flight.
 * @param rates the session's own model first: it is also assumed for a request whose model was not announced
 */
export async function recordLostCalls(
  db: Queryable,
  sessionId: string,
  rates: readonly [LostRate, ...LostRate[]],
): Promise<void> {
  const usd = JSON.stringify(
    Object.fromEntries(rates.toReversed().map(({ model, usdPerToken }) => [model, usdPerToken ?? null])),
  );
  const [starts, thinking] = [alias(events, "begun"), alias(events, "thinking")];
  const announced = part
    .select({ name: sql`${thinking.data}->>'model'` })
    .from(thinking)
    .where(
      and(
        eq(thinking.sessionId, sessionId),
        eq(thinking.type, "llm:thinking"),
        gt(thinking.seq, starts.seq),
        eq(thinking.epoch, starts.epoch),
        eq(thinking.step, starts.step),
        eq(thinking.attempt, starts.attempt),
      ),
    )
    .orderBy(asc(thinking.seq))
    .limit(1);
  const [{ model: ownModel }] = rates;
  const isAsked = sql`in_epoch = asked_epoch and in_step = asked_step`;
  await db.execute(sql`
    with started(asked_epoch, asked_step, try, place, input, pure, asked_model) as (
      select ${starts.epoch}, ${starts.step}, ${starts.attempt}, ${starts.seq}, coalesce((${starts.data}->>'estimatedInput')::int, 0),
        coalesce((${starts.data}->>'estimated')::boolean, true), coalesce(${announced}, ${ownModel})
      from ${events} ${starts} where ${starts.sessionId} = ${sessionId} and ${starts.type} = 'step:started'),
    billed(in_epoch, in_step, in_try, by_model) as (
      select ${modelCalls.epoch}, ${modelCalls.step}, ${modelCalls.attempt}, ${modelCalls.model} from ${modelCalls}
      where ${modelCalls.sessionId} = ${sessionId} and ${modelCalls.purpose} = 'step'),
    lost as (
      select *, row_number() over (partition by asked_epoch, asked_step order by place desc) as rank from (
        select *, row_number() over (partition by asked_epoch, asked_step, try, asked_model order by place desc) as back,
          count(*) over (partition by asked_epoch, asked_step, try, asked_model) as asked,
          count(*) over (partition by asked_epoch, asked_step) as asked_in_step
        from started) counted
      where back <= asked - (select count(*) from billed where ${isAsked} and in_try = try and by_model = asked_model))
    ${insertFrom(
      modelCalls,
      {
        sessionId,
        epoch: sql`asked_epoch`,
        step: sql`asked_step`,
        attempt: sql`try`,
        purpose: sql`'step'`,
        model: sql`asked_model`,
        status: sql`'wasted'`,
        error: LOST,
        estimatedInput: sql`input`,
        estimatePure: sql`pure`,
        costUsd: sql`input * (${usd}::jsonb->>(case when ${usd}::jsonb ? asked_model then asked_model else ${ownModel} end))::float8`,
      },
      sql`from lost where rank <= asked_in_step - (select count(*) from billed where ${isAsked})`,
    )}`);
}

const isUncosted = sql`${modelCalls.costUsd} is null and ${modelCalls.inputTokens} is not null`;
const uncosted = (column: AnyPgColumn) =>
  sql<number>`coalesce(sum(${column}) filter (where ${isUncosted}), 0)::float8`;

/** Sums over calls that make up a session's cost. */
export const costColumns = {
  estimatedUsd: sql<number>`coalesce(sum(${modelCalls.costUsd}) filter (where ${modelCalls.inputTokens} is null and ${modelCalls.status} = 'wasted'), 0)::float8`,
  costUsd: sql<number>`coalesce(sum(${modelCalls.costUsd}), 0)::float8`,
  uncostedCalls: sql<number>`(count(*) filter (where ${isUncosted}))::int`,
  uncostedInput: uncosted(modelCalls.inputTokens),
  uncostedCached: uncosted(modelCalls.cachedTokens),
  uncostedOutput: uncosted(modelCalls.outputTokens),
};

/** Converts a row of `costColumns` to a bill; without a row, the bill of a session without calls. */
export function sessionBill(
  row: { readonly [name in keyof typeof costColumns]: number } | undefined,
): SessionBill {
  return {
    costUsd: row?.costUsd ?? 0,
    estimatedUsd: row?.estimatedUsd ?? 0,
    uncosted: {
      calls: row?.uncostedCalls ?? 0,
      input: row?.uncostedInput ?? 0,
      cached: row?.uncostedCached ?? 0,
      output: row?.uncostedOutput ?? 0,
    },
  };
}

/** The session's billed cost in USD, as far as it is known. */
export async function loadBill(db: Queryable, sessionId: string): Promise<SessionBill> {
  const [row] = await db.select(costColumns).from(modelCalls).where(eq(modelCalls.sessionId, sessionId));
  return sessionBill(row);
}

/** As float8: a sum of tokens may exceed 2^31, and is exact below 2^53. */
export const usageColumns = {
  input: sql<number>`coalesce(sum(${modelCalls.inputTokens}), 0)::float8`,
  output: sql<number>`coalesce(sum(${modelCalls.outputTokens}), 0)::float8`,
  cached: sql<number>`coalesce(sum(${modelCalls.cachedTokens}), 0)::float8`,
  reasoning: sql<number>`coalesce(sum(${modelCalls.reasoningTokens}), 0)::float8`,
  calls: sql<number>`count(*)::int`,
};

/** Everything a session was billed, kept and wasted. */
export async function totalUsage(db: Queryable, sessionId: string): Promise<StepUsage & { calls: number }> {
  const [row] = await db.select(usageColumns).from(modelCalls).where(eq(modelCalls.sessionId, sessionId));
  return row ?? { input: 0, output: 0, cached: 0, reasoning: 0, calls: 0 };
}

/** USD of all calls whose cost is known, of a session with its delegates or of a delegate with its siblings. */
export async function spentUsd(db: Queryable, sessionId: string): Promise<number> {
  const [member, self] = [alias(sessions, "member"), alias(sessions, "own")];
  const [row] = await db
    .select({ spent: sql<number>`coalesce(sum(${modelCalls.costUsd}), 0)::float8` })
    .from(modelCalls)
    .where(
      inArray(
        modelCalls.sessionId,
        part
          .select({ id: member.id })
          .from(member)
          .innerJoin(self, sql`coalesce(${self.parentId}, ${self.id}) in (${member.id}, ${member.parentId})`)
          .where(eq(self.id, sessionId)),
      ),
    );
  return row?.spent ?? 0;
}

/** The ratio of a model's real count to our estimate, as learned over all sessions; activities read it with the session. */
export async function loadRatio(db: Queryable, model: string): Promise<TokenRatio | undefined> {
  const [row] = await db
    .select({ ratio: tokenRatios.ratio, samples: tokenRatios.samples })
    .from(tokenRatios)
    .where(eq(tokenRatios.model, model));
  return row;
}

async function saveRatio(db: Queryable, model: string, tokenRatio: TokenRatio): Promise<void> {
  const set = { ...tokenRatio, updatedAt: sql`now()` };
  await db
    .insert(tokenRatios)
    .values({ model, ...tokenRatio })
    .onConflictDoUpdate({ target: tokenRatios.model, set });
}

/** A learned ratio is stored only when it has changed by this fraction, not after every call. */
const RATIO_STEP = 0.01;

/**
 * Updates the ratio of a model's token count to our estimate with the usage of a request.
 * `estimatedTokens` is the request's estimate before any ratio is applied.
 * @returns the ratio that is now stored
 */
export async function learnFrom(
  db: Queryable,
  model: string,
  tokenRatio: TokenRatio | undefined,
  { estimatedTokens, usage }: { readonly estimatedTokens: number; readonly usage: StepUsage | undefined },
): Promise<TokenRatio | undefined> {
  if (!usage) return tokenRatio;
  const next = learnRatio(tokenRatio, estimatedTokens, usage.input);
  if (tokenRatio && Math.abs(next.ratio - tokenRatio.ratio) < RATIO_STEP * tokenRatio.ratio)
    return tokenRatio;
  await saveRatio(db, model, next);
  return next;
}
