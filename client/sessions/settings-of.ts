import { runConfigSchema, type RunConfig } from "../../activities/config/agent-config.ts";
import { issueTexts } from "../../activities/config/issue-text.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { notPossible } from "../console/errors.ts";

/** A session's settings as its row has them. @throws ClientError (impossible) for some that this version does not take */
export function settingsOf({ id, config }: Pick<SessionRow, "id" | "config">): RunConfig {
  const parsed = runConfigSchema.safeParse(config);
  if (parsed.success) return parsed.data;
  const wrong = issueTexts(parsed.error, runConfigSchema);
  throw notPossible(
    `The session ${id} has settings that this version does not accept.\n${wrong.join("\n")}`,
    "If a newer version stored them, update this one. Otherwise start the task again with other settings; `longhaul pull` copies the session's files.",
  );
}
