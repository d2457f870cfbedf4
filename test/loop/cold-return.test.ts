/** A session that is resumed when its provider has forgotten it: a round first, if that is asked for (decision 0034). */
import { eq, sql } from "drizzle-orm";
import { expect, it } from "vitest";
import { modelCalls } from "../../activities/store/schema/index.ts";
import { guidance, startDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { mixedText } from "../support/mixed-text.ts";
import { call, text } from "../support/scripted-model.ts";
import { longSession, says, wordsOf } from "../support/scripted-summaries.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

const READS = 5;
const ASKED = "And now the other half.";

/** A turn that took half of what a window of 128,000 tokens holds, and the answer to what is said after it. */
async function ended(context: object = {}): Promise<DirectAgent> {
  const reads = Array.from({ length: READS }, (_, at) => ({
    parts: [text(`Part ${at}.`), call("read_file", { path: "big.txt", offset: 1 + at * 5 })],
  }));
  const script = longSession({ steps: [...reads, says("Half of it is done."), says("All of it is done.")] });
  const strategy = { strategy: "threshold-turns" as const, options: {}, ...context };
  const agent = await startDirectAgent(database, script, {
    task: "Read all of it.",
    config: { contextWindow: 128_000, context: strategy },
  });
  await agent.sandbox.files.write("big.txt", Buffer.from(mixedText(3, 400)));
  const { state } = await playLoop(agent);
  expect(state.round).toBe(0);
  expect(state.usedTokens).toBeGreaterThan(50_000);
  return agent;
}

/** Takes it up again after so many minutes. @returns its rounds, and the last request's text */
async function takenUp(agent: DirectAgent, minutes: number): Promise<{ rounds: number; asked: string }> {
  await database.store.db
    .update(modelCalls)
    .set({ createdAt: sql`now() - make_interval(mins => ${minutes})` })
    .where(eq(modelCalls.sessionId, agent.id));
  agent.runId = `${agent.runId}-again`;
  const { state, status } = await playLoop(agent, {
    guidanceAt: (step) => (step === READS + 2 ? [guidance(ASKED)] : []),
  });
  expect(status).toBe("completed");
  const last = agent.model.requests.at(-1);
  return { rounds: state.round, asked: last === undefined ? "" : wordsOf(last) };
}

it("a session resumed past its trigger for an expired cache is summarised first", async () => {
  const { rounds, asked } = await takenUp(await ended(), 11);
  expect(rounds).toBe(1);
  expect(asked).toContain("Session Summary");
  expect(asked).toContain("Read all of it.");
  expect(asked).toContain(ASKED);
});

it.each([
  ["within the ten minutes of its cache", {}, 9],
  ["later, if the trigger for that is the other one's", { options: { returnTrigger: 0.8 } }, 11],
])("it continues as it was %s", async (_, context, minutes) => {
  const { rounds, asked } = await takenUp(await ended(context), minutes);
  expect(rounds).toBe(0);
  expect(asked).toContain("Part 0.");
  expect(asked).toContain(ASKED);
});
