/** A session whose sandbox is taken away in the middle of a command. */
import { eventually } from "./eventually.ts";
import type { AgentHarness, RunningSession } from "./agent-harness.ts";
import { transcriptOf } from "./stored.ts";

/** A busy machine takes its time to bring a sandbox up. */
const BUSY_MS = 180_000;

/** Waits until a process whose command line holds `text` runs in the session's sandbox. */
export async function untilItRuns(agent: AgentHarness, session: RunningSession, text: string): Promise<void> {
  const sandbox = agent.docker.getContainer(`longhaul-${session.id}`);
  await eventually(
    `"${text}" runs`,
    async () => {
      const top = await sandbox.top().catch(() => undefined);
      // The shell's own line has the text before it has begun anything.
      return top?.Processes.some((row: string[]) => row.at(-1) === text);
    },
    BUSY_MS,
  );
}

/** Removes the session's container and its volume, as a lost disk would. */
export async function removeAll(agent: AgentHarness, session: RunningSession): Promise<void> {
  await agent.docker.getContainer(`longhaul-${session.id}`).remove({ force: true });
  await agent.docker.getVolume(`longhaul-${session.id}`).remove();
}

/** What the model was told of its sandbox at step boundaries. */
export async function noticesOf(agent: AgentHarness, session: RunningSession): Promise<string[]> {
  const rows = await transcriptOf(agent.database.store, session.id);
  return rows
    .filter((row) => row.kind === "notice")
    .map((row) => (row.content as [{ text: string }])[0].text);
}
