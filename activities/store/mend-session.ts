/** What a client stored of a session, cleaned by the worker: the client knows neither the worker's secrets nor its rules. */
import { and, eq, inArray } from "drizzle-orm";
import type { RunConfig } from "../config/agent-config.ts";
import type { MessageKind, UserPart } from "../contract/message.ts";
import { estimateMessage } from "../contract/request-size.ts";
import { estimateText } from "../text/tokens.ts";
import { cleanDeep } from "../text/clean.ts";
import type { Queryable } from "./db.ts";
import { schedules, sessions, storedMessages } from "./schema/index.ts";

type Clean = (text: string) => string;

/** The messages that a client writes: the system prompt with its instructions and skills, and the task. */
const WRITTEN_BY_CLIENTS: readonly MessageKind[] = ["system", "task"];

/** Replaces what the worker may not show in a session's task, settings, instructions, prompt and first message. Idempotent. */
export async function mendSession(tx: Queryable, id: string, clean: Clean): Promise<void> {
  const { task, config, instructions } = sessions;
  const [stored] = await tx.select({ task, config, instructions }).from(sessions).where(eq(sessions.id, id));
  if (stored === undefined) return;
  const mended = cleanDeep(stored, clean) as typeof stored;
  if (differs(stored, mended)) await tx.update(sessions).set(mended).where(eq(sessions.id, id));
  const first = await tx
    .select({ id: storedMessages.id, role: storedMessages.role, content: storedMessages.content })
    .from(storedMessages)
    .where(and(eq(storedMessages.sessionId, id), inArray(storedMessages.kind, [...WRITTEN_BY_CLIENTS])));
  for (const { id: message, role, content: old } of first) {
    const content = cleanDeep(old, clean) as UserPart[];
    if (!differs(old, content)) continue;
    const tokenCount =
      role === "system"
        ? estimateText(content.map((part) => (part.type === "text" ? part.text : "")).join(""))
        : estimateMessage({ role: "user", content }, mended.config as RunConfig);
    await tx.update(storedMessages).set({ content, tokenCount }).where(eq(storedMessages.id, message));
  }
}

/** The same for a schedule, before a session is made of it. @returns the schedule as it is stored now */
export async function mendSchedule<
  Row extends Pick<typeof schedules.$inferSelect, "name" | "task" | "config">,
>(db: Queryable, schedule: Row, clean: Clean): Promise<Row> {
  const { name, task, config } = schedule;
  const mended = cleanDeep({ task, config }, clean) as Pick<Row, "task" | "config">;
  if (!differs({ task, config }, mended)) return schedule;
  await db.update(schedules).set(mended).where(eq(schedules.name, name));
  return { ...schedule, ...mended };
}

const differs = (old: unknown, mended: unknown): boolean => JSON.stringify(old) !== JSON.stringify(mended);
