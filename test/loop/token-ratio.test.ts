/** What bills teach about a model's tokenizer is kept in Postgres: the next worker begins with it. */
import { expect, it } from "vitest";
import { openStore } from "../../activities/store/db.ts";
import { startDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { mixedText } from "../support/mixed-text.ts";
import { call, countTokens, text, type Turn } from "../support/scripted-model.ts";
import { type TestDatabase, useDatabase } from "../support/test-database.ts";
import { billsOf } from "../support/stored.ts";

const database = useDatabase();

const STEPS = 15;
const config = { model: "openai/counts-more", contextWindow: 128_000, maxOutput: 1_000 };

/** Counts a fifth more than we do. */
async function start(on: TestDatabase): Promise<DirectAgent> {
  let step = 0;
  const script: Turn = () => {
    step += 1;
    const read = call("read_file", { path: "big.txt", offset: 1 + step * 5, limit: 30 });
    return { parts: step < STEPS ? [text(`Step ${step}.`), read] : [text("It is done.")] };
  };
  const agent = await startDirectAgent(on, script, {
    countTokens: (value) => Math.ceil(countTokens(value) * 1.2),
    config,
  });
  await agent.sandbox.files.write("big.txt", Buffer.from(mixedText(3, 400)));
  return agent;
}

/** How far the estimate of a session's first request, which no bill stands behind, was from its bill; 0–1. */
async function firstError({ store }: TestDatabase, { id }: DirectAgent): Promise<number> {
  const [first] = await billsOf(store, id);
  return Math.abs((first?.estimatedInput ?? 0) / (first?.inputTokens ?? 0) - 1);
}

it(
  "a model's ratio predicts the next session's first request, after a restart",
  { tags: ["case-18"] },
  async () => {
    const before = await start(database);
    await playLoop(before);
    await before.close();
    const untaught = await firstError(database, before);
    expect(untaught).toBeGreaterThan(0.05);

    // Another worker's connections: nothing is left in memory.
    const store = openStore({ url: database.url, maxConnections: 4 });
    const restarted = { ...database, store };
    try {
      const after = await start(restarted);
      await playLoop(after);
      await after.close();
      expect(await firstError(restarted, after)).toBeLessThan(untaught / 2);
    } finally {
      await store.close();
    }
  },
);
