/** A person's cancel: until the provider's stream is cut, until the command's processes are gone, until the run is closed. */
import { existsSync } from "node:fs";
import { connectDocker } from "../../../activities/sandbox/docker/connect-docker.ts";
import { now } from "../stand/channel.ts";
import type { BenchSession, Stand } from "../stand/stand.ts";
import { median } from "../stats.ts";
import type { Figure } from "../table.ts";
import type { Scale } from "./group.ts";

const LOOK_MS = 5;
const PATIENCE_MS = 20_000;

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
  const figure = (name: string, values: readonly number[], atMost: number): Figure => ({
    name,
    value: median(values),
    unit: "ms",
    n: values.length,
    goal: { of: "value", atMost },
    note: `slowest ${Math.max(...values).toFixed(0)} ms`,
  });
  return [
    figure("cancel to the provider's stream cut", aborted, 1_000),
    figure("cancel to the command's processes gone", gone, 500),
    figure("cancel to the run closed, sandbox removed", closed, 1_000),
  ];
}

async function cancelModel(stand: Stand): Promise<{ aborted: number; closed: number }> {
  const session = await stand.start({ steps: 0, calls: 0, tool: "probe", hangs: true });
  await stand.model.nth(session.id, 1);
  // Until the sandbox is there too: its removal is part of what is timed.
  await until(() => containerOf(session.id));
  const { at, closed } = await cancel(session);
  return { aborted: (await stand.model.nth(session.id, 1, "aborts")) - at, closed };
}

async function cancelCommand(stand: Stand): Promise<{ gone: number; closed: number }> {
  const seconds = 1_000 + Math.floor(Math.random() * 100_000);
  const command = `trap '' TERM; (setsid sleep ${seconds} &); sleep ${seconds} # {key}`;
  const session = await stand.start({ steps: 1, calls: 1, tool: "bash", command });
  const pids = await until(async () => {
    const found = await sleepers(session.id, seconds);
    return found.length >= 2 ? found : undefined;
  });
  const watching = until(() => (pids.some((pid) => existsSync(`/proc/${pid}`)) ? undefined : now()));
  const { at, closed } = await cancel(session);
  return { gone: (await watching) - at, closed };
}

async function cancel({ handle }: BenchSession): Promise<{ at: number; closed: number }> {
  const at = now();
  const over = handle.result().catch(() => undefined);
  await handle.cancel();
  await over;
  return { at, closed: now() - at };
}

/** Numbers of the processes as this machine sees them. */
async function sleepers(id: string, seconds: number): Promise<string[]> {
  const container = await containerOf(id);
  if (container === undefined) return [];
  const top = await connectDocker()
    .getContainer(container)
    .top()
    .catch(() => undefined);
  const column = top?.Titles.indexOf("PID") ?? -1;
  return (top?.Processes ?? [])
    .filter((row: string[]) => row.at(-1) === `sleep ${seconds}`)
    .map((row: string[]) => row[column] ?? "");
}

async function containerOf(id: string): Promise<string | undefined> {
  const filters = { label: [`longhaul.session=${id}`] };
  const [found] = await connectDocker().listContainers({ filters });
  return found?.Id;
}

async function until<T>(look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error(`Waited ${PATIENCE_MS} ms without success.`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
