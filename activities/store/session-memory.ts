/** What tools may read of the session's past: whole outputs, the transcript, blobs. */
import { and, asc, desc, eq, lte, max, sql } from "drizzle-orm";
import { pageOf } from "../text/cut.ts";
import type { ToolResultPart, UserPart } from "../contract/message.ts";
import type { Queryable } from "./db.ts";
import { saveBlobFor } from "./blobs.ts";
import { storedMessages, toolOutputs } from "./schema/index.ts";
import { searchHistory } from "./transcript-search.ts";
import type { SessionMemory } from "../contract/tools.ts";

/** Handle of a person's message: see `messageHandle`. */
const MESSAGE_HANDLE = /^m(\d+)$/;
const HANDLE = /^(?:e(\d+))?s(\d+)c(\d+)$/;

export function createSessionMemory(db: Queryable, sessionId: string): SessionMemory {
  return {
    async readOutput(handle, offset, limit) {
      const stored = await storedOutput(db, { sessionId, handle }, offset, limit);
      if (stored) return stored;
      // A result that was not cut is in the transcript, even if it has been pruned or compacted since.
      const text = await resultText(db, sessionId, handle);
      return text === undefined ? undefined : { ...pageOf(text, offset, limit), total: text.length };
    },
    search: (words, limit) => searchHistory(db, sessionId, words, { limit }),
    saveBlob: (bytes, mediaType) => saveBlobFor(db, sessionId, { bytes, mediaType }),
  };
}

async function storedOutput(
  db: Queryable,
  { sessionId, handle }: { readonly sessionId: string; readonly handle: string },
  offset: number,
  limit: number,
) {
  const mine = and(eq(toolOutputs.sessionId, sessionId), eq(toolOutputs.handle, handle));
  const [last] = await db.select().from(toolOutputs).where(mine).orderBy(desc(toolOutputs.part)).limit(1);
  if (!last) return undefined;
  const total = last.offset + last.content.length;
  const begin = db
    .select({ part: max(toolOutputs.part) })
    .from(toolOutputs)
    .where(and(mine, lte(toolOutputs.offset, offset)));
  const parts = await db
    .select()
    .from(toolOutputs)
    .where(
      and(
        mine,
        // Includes the piece that begins where the page ends: it may hold the second half of a character.
        lte(toolOutputs.offset, offset + limit),
        sql`${toolOutputs.part} >= coalesce(${begin}, 0)`,
      ),
    )
    .orderBy(asc(toolOutputs.part));
  const start = parts[0]?.offset ?? 0;
  const text = parts.map((part) => part.content).join("");
  const page = pageOf(text, offset - start, limit);
  return { text: page.text, end: start + page.end, total };
}

async function resultText(db: Queryable, sessionId: string, handle: string): Promise<string | undefined> {
  const message = MESSAGE_HANDLE.exec(handle)?.[1];
  if (message !== undefined) return messageText(db, sessionId, Number(message));
  const match = HANDLE.exec(handle);
  if (!match) return undefined;
  const [row] = await db
    .select({ content: storedMessages.content })
    .from(storedMessages)
    .where(
      and(
        eq(storedMessages.sessionId, sessionId),
        eq(storedMessages.epoch, Number(match[1] ?? 1)),
        eq(storedMessages.step, Number(match[2])),
        eq(storedMessages.slot, `tool:${match[3]}`),
      ),
    );
  return (row?.content as [ToolResultPart] | undefined)?.[0].text;
}

async function messageText(db: Queryable, sessionId: string, sequence: number): Promise<string | undefined> {
  const [row] = await db
    .select({ content: storedMessages.content })
    .from(storedMessages)
    .where(
      and(
        eq(storedMessages.sessionId, sessionId),
        eq(storedMessages.sequence, sequence),
        eq(storedMessages.role, "user"),
      ),
    );
  return (row?.content as UserPart[] | undefined)
    ?.map((part) => (part.type === "text" ? part.text : `[${part.filename ?? "a file"} (${part.mediaType})]`))
    .join("\n");
}
