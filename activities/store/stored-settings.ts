/** A session's settings as its row stores them, and its system prompt: stored, so that an upgrade never changes a running session's prefix. */
import { eq, sql, and } from "drizzle-orm";
import { runConfigSchema, type RunConfig } from "../config/agent-config.ts";
import { cleanText, cleanDeep } from "../text/clean.ts";
import { retryable } from "../contract/failures.ts";
import type { Queryable } from "./db.ts";
import { sessions, storedMessages } from "./schema/index.ts";
import { type ProjectFiles, systemPrompt, type Prompted } from "../config/system-prompt.ts";
import { estimateText } from "../text/tokens.ts";

/** The settings as `parseStoredConfig` takes them. */
export const configText = sql<string>`${sessions.config}::text`;

/** The settings as its row has them now; undefined if there is no such session. */
export async function loadConfig(db: Queryable, id: string): Promise<RunConfig | undefined> {
  const [row] = await db.select({ config: configText }).from(sessions).where(eq(sessions.id, id));
  return row && parseStoredConfig(id, row.config);
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
export function parseStoredConfig(id: string, text: string): RunConfig {
  const cached = checked.get(text);
  if (cached !== undefined) return cached;
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

export const SYSTEM_SEQUENCE = 1;
/** Joins `storedMessages` to a query of sessions for `promptText`. */
export const isPromptOfSession = and(
  eq(storedMessages.sessionId, sessions.id),
  eq(storedMessages.sequence, SYSTEM_SEQUENCE),
  eq(storedMessages.role, "system"),
);
/** The prompt that a session runs with. */
export const promptText = sql<string>`${storedMessages.content}->0->>'text'`;

/** The fields of a session's first message that depend on its prompt. */
export function promptRow(of: PromptParts) {
  return {
    sequence: SYSTEM_SEQUENCE,
    position: SYSTEM_SEQUENCE,
    slot: "system",
    role: "system",
    kind: "system",
    ...promptContent(of),
  };
}

interface PromptParts {
  readonly config: Prompted["config"];
  readonly instructions?: string | undefined;
  readonly skills?: ProjectFiles["skills"];
  readonly template?: ProjectFiles["template"];
  /** Copied unchanged from another session. */
  readonly prompt?: string | undefined;
}

function promptContent({ config, instructions, skills = [], template, prompt }: PromptParts) {
  const text = prompt ?? systemPrompt({ config, instructions, skills, template });
  return { content: [{ type: "text", text }], tokenCount: estimateText(text) };
}

/** Adds the instructions in a repository's files to the prompt, before the first step: no request has used the prompt yet. */
export async function setPrompt(
  db: Queryable,
  { id, config }: { readonly id: string; readonly config: RunConfig },
  { instructions, skills, template }: ProjectFiles,
): Promise<void> {
  await db
    .update(storedMessages)
    .set(promptContent({ config, instructions, skills, template }))
    .where(
      and(
        eq(storedMessages.sessionId, id),
        eq(storedMessages.sequence, SYSTEM_SEQUENCE),
        eq(storedMessages.role, "system"),
      ),
    );
}
