/** Where the estimate decides whether a request is sent, compacted or neither, the provider's own count decides, if it is free. */
import { describe, expect, it } from "vitest";
import type { CountFront, CountFrontOptions } from "../support/count-front.ts";
import { startCountFront } from "../support/count-front.ts";
import { startDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { targetAt } from "../support/dialects/targets.ts";
import { mixedText } from "../support/mixed-text.ts";
import { call, text, type Turn } from "../support/scripted-model.ts";
import { goodSummary, isSummaryRequest, says } from "../support/scripted-summaries.ts";
import { roundsOf } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();
const WINDOW = 32_000;

interface Started {
  readonly agent: DirectAgent;
  readonly front: () => CountFront;
}

async function start(
  script: Turn,
  own: { readonly config?: object; readonly task?: string; readonly front?: CountFrontOptions } = {},
): Promise<Started> {
  let front: CountFront | undefined;
  const agent = await startDirectAgent(database, script, {
    dialect: "anthropic",
    served: { "claude-sonnet-5": { window: WINDOW, maxOutput: 2_000, reasoning: true } },
    task: own.task,
    through: async (baseUrl) => {
      front = await startCountFront(baseUrl, own.front);
      return front.url;
    },
    config: { ...own.config },
    targetAt: (baseUrl) => ({ ...targetAt("anthropic", baseUrl), contextWindow: WINDOW, maxOutput: 2_000 }),
  });
  await agent.sandbox.files.write("big.txt", Buffer.from(mixedText(3, 400)));
  return { agent, front: () => front as CountFront };
}

/** Steps that read a page each. */
function reads(total: number): Turn {
  let step = 0;
  return (request) => {
    if (isSummaryRequest(request)) return goodSummary(request);
    step += 1;
    return step < total
      ? { parts: [text(`Step ${step}.`), call("read_file", { path: "big.txt", offset: step, limit: 60 })] }
      : says("Done.");
  };
}

/** Of repeated words, which we count as more than they are: the first request of a session, which no bill precedes. */
const taskOf = (tokens: number) => "word ".repeat(tokens);

describe("a first request that reaches the trigger by our estimate", () => {
  // 80 % of a window of 32,000 without its reserves.
  const task = taskOf(20_000);

  it("is sent as it is if the provider counts less", async () => {
    const { agent, front } = await start(reads(2), { task, front: { tokens: () => 15_000 } });
    expect((await playLoop(agent)).status).toBe("completed");
    expect(front().counts.map(({ status }) => status)).toEqual([200]);
    expect(await roundsOf(database.store, agent.id)).toEqual([]);
  });
});

describe("a request near the largest that the model takes", () => {
  const config = { context: { strategy: "reactive-overflow", options: { prune: "never" } } };

  it("is not sent if the provider counts more than fits", async () => {
    const { agent, front } = await start(reads(2), {
      task: taskOf(26_000),
      config,
      front: { tokens: () => 60_000 },
    });
    await playLoop(agent);
    expect(front().counts.length).toBeGreaterThan(0);
    const sent = agent.model.log.filter(({ request }) => request !== undefined && !isSummaryRequest(request));
    expect(Math.max(...sent.map(({ usage }) => usage?.input ?? 0))).toBeLessThan(10_000);
  });

  it("is decided by the estimate if the provider cannot count", async () => {
    const { agent, front } = await start(reads(2), { task: taskOf(26_000), config, front: { instead: 404 } });
    expect((await playLoop(agent)).status).toBe("completed");
    expect(front().counts).toHaveLength(1);
    expect(agent.model.log.every(({ status }) => status === 200)).toBe(true);
  });
});

it.each(["threshold-turns", "reactive-overflow"] as const)(
  "a long session with %s asks for a count only where it decides, and none is refused",
  async (strategy) => {
    const { agent, front } = await start(reads(100), {
      config: { context: { strategy, options: { prune: "never" } } },
    });
    expect((await playLoop(agent)).status).toBe("completed");
    const { counts } = front();
    expect(counts.every(({ status }) => status === 200)).toBe(true);
    expect(agent.model.log.filter(({ status }) => status !== 200)).toEqual([]);
    const rounds = (await roundsOf(database.store, agent.id)).length;
    expect(rounds).toBeGreaterThan(3);
    // With the trigger at 80 %, bills tell enough: only a request at the limit is worth a count.
    expect(counts.length).toBeLessThanOrEqual(strategy === "threshold-turns" ? 1 : rounds + 2);
  },
  60_000,
);
