/** A session's settings as its row has them. */
import { runConfigSchema, type RunConfig } from "../config/agent-config.ts";
import { retryable } from "../contract/failures.ts";

/** @throws WorkerOutdated (retryable) for a setting that this version does not know, as a newer client may have stored */
export function configOf(id: string, stored: unknown): RunConfig {
  const parsed = runConfigSchema.safeParse(stored);
  if (parsed.success) return parsed.data;
  const names = parsed.error.issues.map(({ path }) => path.join("."));
  throw retryable(
    "WorkerOutdated",
    `This version does not know what session ${id} has for ${[...new Set(names)].join(", ")}; a newer worker takes it over. Replace the old workers.`,
  );
}
