/**
 * Resets of sessions of every shape to every kind of event, of the newest run and of older ones, also twice and during what is in
 * flight. With LONGHAUL_RESETS and LONGHAUL_RESET_SEED it makes as many resets as wanted, of all shapes, and prints their counts.
 */
import { afterAll, expect, it } from "vitest";
import { startAgent } from "../support/agent-harness.ts";
import { createFakeHost } from "../support/fake-host.ts";
import { perFile } from "../support/per-file.ts";
import { createRandom } from "../support/random.ts";
import { newCounts, resetSession } from "../support/resets/reset-session.ts";
import { OWN_TOOLS, SHAPES } from "../support/resets/shapes.ts";

const host = createFakeHost();
const agent = perFile(() => startAgent({ sandboxHost: host, ownTools: OWN_TOOLS }));
afterAll(() => host.dispose());

const TOTAL = Number(process.env["LONGHAUL_RESETS"] ?? 24);
const SEED = Number(process.env["LONGHAUL_RESET_SEED"] ?? 7);
const IS_LONG = process.env["LONGHAUL_RESETS"] !== undefined;
const ONLY = process.env["LONGHAUL_RESET_SHAPES"]?.split(",");
/** Of one session, before another of its shape is started: the checker reads all of its histories. */
const PER_SESSION = IS_LONG ? 20 : 2;
const AT_ONCE = 4;

it(
  "whatever is reset goes on with its own line to its end, and all that is left is sound",
  { timeout: IS_LONG ? 6 * 3_600_000 : 300_000 },
  async () => {
    const counts = newCounts();
    const shapes = SHAPES.filter(({ name }) => ONLY?.includes(name) ?? true);
    const sessions = Math.ceil(TOTAL / PER_SESSION);
    let [next, shown] = [0, 0];
    const lane = async () => {
      while (next < sessions) {
        const number = next++;
        // One seed after the other, each shape comes round.
        const shape = shapes[(SEED * sessions + number) % shapes.length];
        if (!shape) return;
        const random = createRandom(SEED * 1_000 + number);
        await resetSession(agent, shape, { random, counts, resets: PER_SESSION });
        if (!IS_LONG) continue;
        process.stderr.write(`${number + 1} of ${sessions} sessions\n`);
        for (const violation of counts.violations.slice(shown))
          process.stderr.write(`VIOLATION ${violation}\n`);
        shown = counts.violations.length;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    if (IS_LONG) {
      const table = (of: ReadonlyMap<string, number>) =>
        [...of]
          .toSorted(([a], [b]) => a.localeCompare(b))
          .map(([name, times]) => `  ${times} ${name}`)
          .join("\n");
      const sum = (of: ReadonlyMap<string, number>) =>
        [...of.values()].reduce((all, times) => all + times, 0);
      process.stderr.write(
        `seed ${SEED}: ${sum(counts.done)} resets\n${table(counts.done)}\n${sum(counts.overtaken)} more that another reset overtook:\n${table(counts.overtaken)}\nrefused:\n${table(counts.refused)}\n`,
      );
    }
    expect(counts.violations).toEqual([]);
  },
);
