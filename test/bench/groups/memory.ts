/** Memory of a worker by session: of those that wait for a model, and of those that are over and wait for a person. */
import type { Stand } from "../stand/stand.ts";
import { atMost, type Figure } from "../table.ts";
import type { Scale } from "./group.ts";

const MANY = 50;
const FEW = 20;
const KB = 1_024;
/** A young worker's heap grows with anything it does. */
const WARM_UP = 60;

export async function measureMemory(stand: Stand, scale: Scale): Promise<Figure[]> {
  const count = scale.repeats > 2 ? MANY : FEW;
  await endedSessions(stand, WARM_UP, 10);
  const before = await rss(stand);
  const active = await together(count, () =>
    stand.start({ steps: 0, calls: 0, tool: "probe", hangs: true }, { bulk: true }),
  );
  await Promise.all(active.map(({ id }) => stand.model.nth(id, 1)));
  const during = await rss(stand);
  await Promise.all(active.map(({ handle }) => handle.cancel()));
  await Promise.all(active.map(({ handle }) => handle.result().catch(() => undefined)));
  const over = await rss(stand);
  await endedSessions(stand, count, count / 5);
  const idle = await rss(stand);
  const figure = (name: string, bytes: number, more: Partial<Figure> = {}): Figure => ({
    name,
    value: bytes / count / KB,
    unit: "KB",
    n: count,
    ...more,
  });
  return [
    figure("memory of an idle session (ended, resumed by `say`)", idle - over, {
      goal: atMost(350),
      note: "growth of the worker after collecting garbage",
    }),
    figure("memory of a session that waits for its model", during - before),
    { name: "memory of the worker itself", value: before / KB / KB, unit: "MB", n: 1 },
  ];
}

const together = <T>(count: number, work: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, work));

/** Sessions of one step, so many at once. */
async function endedSessions(stand: Stand, count: number, atOnce: number): Promise<void> {
  for (let ended = 0; ended < count; ended += atOnce)
    await together(atOnce, async () => {
      const { handle } = await stand.start({ steps: 1, calls: 1, tool: "probe" }, { bulk: true });
      await handle.result();
    });
}

async function rss(stand: Stand): Promise<number> {
  return (await stand.agent.usage(true)).rssBytes;
}
