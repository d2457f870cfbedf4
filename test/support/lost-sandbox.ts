/** A session whose sandbox is removed during a command. */
import { eventually } from "./eventually.ts";
import type { AgentHarness, RunningSession } from "./agent-harness.ts";

/** A busy machine needs time to start a sandbox. */
const BUSY_MS = 180_000;

/** Waits until a process whose command line contains `text` runs in the session's sandbox. */
export async function untilItRuns(agent: AgentHarness, session: RunningSession, text: string): Promise<void> {
  const sandbox = agent.docker.getContainer(`longhaul-${session.id}`);
  await eventually(
    `"${text}" runs`,
    async () => {
      const top = await sandbox.top().catch(() => undefined);
      // The shell's own command line contains the text before anything has begun.
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
