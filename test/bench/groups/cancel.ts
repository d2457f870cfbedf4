/** A person's cancel: until the provider's stream is cut, until the command's processes are gone, until the run is closed. */
import { existsSync } from "node:fs";
import { connectDocker } from "../../../activities/sandbox/docker/connect-docker.ts";
import { eventually } from "../../support/eventually.ts";
import { now } from "../stand/channel.ts";
import type { BenchSession, Stand } from "../stand/stand.ts";
import { atMost, type Figure, middleAndSlowest } from "../table.ts";
import type { Scale } from "./group.ts";

const docker = connectDocker();
const sandboxOf = (id: string) => docker.getContainer(`longhaul-${id}`);

export async function measureCancel(stand: Stand, scale: Scale): Promise<Figure[]> {
  const aborted: number[] = [];
  const gone: number[] = [];
  const closed: number[] = [];
  for (let time = 0; time < scale.repeats; time += 1) {
    const asked = await cancelModel(stand);
    const ran = await cancelCommand(stand);
    aborted.push(asked.aborted);
    gone.push(ran.gone);
    closed.push(asked.closed, ran.closed);
  }
  return [
    middleAndSlowest("cancel to the provider's stream cut", aborted, atMost(1_000)),
    middleAndSlowest("cancel to the command's processes gone", gone, atMost(500)),
    middleAndSlowest("cancel to the run closed, sandbox removed", closed, atMost(1_000)),
  ];
}

async function cancelModel(stand: Stand): Promise<{ aborted: number; closed: number }> {
  const session = await stand.start({ steps: 0, calls: 0, tool: "probe", hangs: true });
  await stand.model.nth(session.id, 1);
  // Until the sandbox is there too: its removal is part of what is timed.
  await eventually("the sandbox is there", () =>
    sandboxOf(session.id)
      .inspect()
      .catch(() => undefined),
  );
  const { at, closed } = await cancel(session);
  return { aborted: (await stand.model.nth(session.id, 1, "aborts")) - at, closed };
}

async function cancelCommand(stand: Stand): Promise<{ gone: number; closed: number }> {
  const seconds = 1_000 + Math.floor(Math.random() * 100_000);
  const command = `trap '' TERM; (setsid sleep ${seconds} &); sleep ${seconds} # {key}`;
  const session = await stand.start({ steps: 1, calls: 1, tool: "bash", command });
  const pids = await eventually("both processes run", async () => {
    const found = await sleepers(session.id, seconds);
    return found.length >= 2 && found;
  });
  const watching = eventually("they are gone", () => !pids.some(isAlive) && now());
  const { at, closed } = await cancel(session);
  return { gone: (await watching) - at, closed };
}

const isAlive = (pid: string) => existsSync(`/proc/${pid}`);

async function cancel({ handle }: BenchSession): Promise<{ at: number; closed: number }> {
  const at = now();
  const over = handle.result().catch(() => undefined);
  await handle.cancel();
  await over;
  return { at, closed: now() - at };
}

/** Numbers of the processes as this machine sees them. */
async function sleepers(id: string, seconds: number): Promise<string[]> {
  const top = await sandboxOf(id)
    .top()
    .catch(() => undefined);
  const column = top?.Titles.indexOf("PID") ?? -1;
  const rows = (top?.Processes ?? []) as string[][];
  return rows.filter((row) => row.at(-1) === `sleep ${seconds}`).map((row) => row[column] ?? "");
}
