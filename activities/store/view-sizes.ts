/** Views of many sessions by their sizes alone: what a list needs, without a word of their contents. */
import { eq, inArray, sql } from "drizzle-orm";
import type { Message, StoredMessage } from "../contract/message.ts";
import { outOfView } from "./compactions.ts";
import type { TokenRatio } from "../transcript/tokens.ts";
import type { Queryable } from "./db.ts";
import { sessions, tokenRatios } from "./schema/index.ts";
import type { MessageMeta } from "./transcript.ts";

/** What the size of a session's request depends on beside its rows. */
export interface SessionSettings {
  readonly id: string;
  /** As it is stored, by whichever version. */
  readonly config: unknown;
  readonly instructions: string | undefined;
  readonly learnt: TokenRatio | undefined;
}

export async function loadSettings(db: Queryable, ids: readonly string[]): Promise<SessionSettings[]> {
  const rows = await db
    .select({
      id: sessions.id,
      config: sessions.config,
      instructions: sessions.instructions,
      ratio: tokenRatios.ratio,
      samples: tokenRatios.samples,
    })
    .from(sessions)
    .leftJoin(tokenRatios, eq(tokenRatios.model, sql`${sessions.config}->>'model'`))
    .where(inArray(sessions.id, [...ids]));
  return rows.map(({ instructions, ratio, samples, ...row }) => ({
    ...row,
    instructions: instructions ?? undefined,
    learnt: ratio === null || samples === null ? undefined : { ratio, samples },
  }));
}

interface SizeRow extends Record<string, unknown> {
  readonly session: string;
  readonly role: StoredMessage["role"];
  readonly kind: StoredMessage["kind"];
  readonly slot: string;
  readonly sequence: string;
  readonly position: number;
  readonly epoch: number;
  readonly step: number;
  readonly tokens: number;
  readonly pruned: number | null;
  readonly meta: MessageMeta | null;
  readonly content: unknown;
}

/**
 * The rows of each session's view in order, with empty contents: their tokens are known. Only what a person said and was
 * cut is there, because its size is worked out from it.
 */
export async function loadViewSizes(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, StoredMessage[]>> {
  const { rows } = await db.execute<SizeRow>(sql`
    select s.id as session, m.role, m.kind, m.slot, m.sequence, m.position, m.epoch, m.step, m.token_count as tokens,
      m.pruned_step as pruned, case when m.kind = 'answer' then m.meta end as meta,
      case when m.role = 'user' and m.pruned_step is not null then m.content end as content
    from json_array_elements_text(${JSON.stringify(ids)}::json) as s(id)
    cross join lateral (${sql.raw(outOfView("s.id"))}) as gone
    join stored_messages m on m.session_id = s.id and m.superseded_epoch is null
      and not m.sequence <@ gone.sequences
    order by s.id, m.position`);
  const views = new Map<string, StoredMessage[]>(ids.map((id) => [id, []]));
  for (const row of rows) views.get(row.session)?.push(toMessage(row));
  return views;
}

function toMessage(row: SizeRow): StoredMessage {
  const { usage, model } = row.meta ?? {};
  return {
    ...messageOf(row),
    kind: row.kind,
    slot: row.slot,
    sequence: Number(row.sequence),
    position: row.position,
    epoch: row.epoch,
    step: row.step,
    tokens: row.tokens,
    prunedStep: row.pruned ?? undefined,
    ...(usage ? { usage } : {}),
    ...(model === undefined ? {} : { model }),
  };
}

function messageOf({ role, content }: SizeRow): Message {
  switch (role) {
    case "user":
      return { role, content: (content ?? []) as Extract<Message, { role: "user" }>["content"] };
    case "assistant":
      return { role, content: [] };
    case "tool":
      return {
        role,
        content: [{ type: "tool-result", toolCallId: "", toolName: "", outcome: "completed", text: "" }],
      };
  }
}
