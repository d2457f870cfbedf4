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
  await endedSessions(stand, count, count / 5);
  const idle = await rss(stand);
  const waiting = await Promise.all(
    Array.from({ length: count }, () =>
      stand.start({ steps: 0, calls: 0, tool: "probe", hangs: true }, { bulk: true }),
    ),
  );
  await Promise.all(waiting.map(({ id }) => stand.model.nth(id, 1)));
  const during = await rss(stand);
  await Promise.all(waiting.map(({ handle }) => handle.cancel()));
  await Promise.all(waiting.map(({ handle }) => handle.result().catch(() => undefined)));
  return [
    {
      name: "memory of a session that waits for its model",
      value: (during - idle) / count / KB,
      unit: "KB",
      n: count,
    },
    {
      name: "memory of an idle session (ended, resumed by `say`)",
      value: (idle - before) / count / KB,
      unit: "KB",
      n: count,
      goal: atMost(350),
      note: `growth of the worker after collecting garbage; it took ${(before / KB / KB).toFixed(0)} MB before`,
    },
  ];
}

/** Sessions of one step, so many at once. */
async function endedSessions(stand: Stand, count: number, atOnce: number): Promise<void> {
  const ended = async () => {
    const { handle } = await stand.start({ steps: 1, calls: 1, tool: "probe" }, { bulk: true });
    await handle.result();
  };
  for (let done = 0; done < count; done += atOnce) await Promise.all(Array.from({ length: atOnce }, ended));
}

async function rss(stand: Stand): Promise<number> {
  return (await stand.agent.usage(true)).rssBytes;
}
