/** A session's settings as its row stores them. */
import { eq, sql } from "drizzle-orm";
import { runConfigSchema, type RunConfig } from "../config/agent-config.ts";
import { cleanText, cleanDeep } from "../text/clean.ts";
import { retryable } from "../contract/failures.ts";
import type { Queryable } from "./db.ts";
import { sessions } from "./schema/index.ts";

/** The settings as `configOf` takes them. */
export const configText = sql<string>`${sessions.config}::text`;

/** The settings as its row has them now; undefined if there is no such session. */
export async function loadConfig(db: Queryable, id: string): Promise<RunConfig | undefined> {
  const [row] = await db.select({ config: configText }).from(sessions).where(eq(sessions.id, id));
  return row && configOf(id, row.config);
}

/**
 * Checked settings by their text: each activity reads its session's, and checking them every time took 1 to 2 ms (measured).
 * Most sessions of a worker share one entry.
 */
const checked = new Map<string, RunConfig>();
const MAX_CHECKED = 500;

/**
 * @param text as `configText` gives it
 * @throws WorkerOutdated (retryable) for a setting that this version does not know, as a newer client may have stored
 */
export function configOf(id: string, text: string): RunConfig {
  const known = checked.get(text);
  if (known !== undefined) return known;
  // A program that wrote the row directly may have stored characters that no text column, variable or header accepts.
  const parsed = runConfigSchema.safeParse(cleanDeep(JSON.parse(text), cleanText));
  if (parsed.success) {
    if (checked.size >= MAX_CHECKED) checked.clear();
    checked.set(text, parsed.data);
    return parsed.data;
  }
  const names = [...new Set(parsed.error.issues.map(({ path }) => path.join(".")))].join(", ");
  throw retryable(
    "WorkerOutdated",
    `This version does not know what session ${id} has for ${names}; a newer worker takes it over. Replace the old workers; if there is none, start the task again with other settings.`,
  );
}
