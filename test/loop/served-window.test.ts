/** A server that runs the model with less than was assumed, and cuts off the beginning of longer requests without an error. */
import { expect, it } from "vitest";
import { type DirectAgentOptions, startDirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { mixedText } from "../support/mixed-text.ts";
import { call, text } from "../support/scripted-model.ts";
import { goodSummary, isSummaryRequest, says } from "../support/scripted-summaries.ts";
import { answersOf, roundsOf } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

const ollama = (window: number | undefined) => (path: string) =>
  path === "/api/ps"
    ? { models: window === undefined ? [] : [{ name: "gpt-4o:latest", context_length: window }] }
    : undefined;

const SUMMARIES_ONLY = {
  config: { context: { strategy: "threshold-turns", options: { prune: "never" } } },
} as const;

/** Reads in twelve steps, then says that it is done. @param onStep called before the answer of each */
async function reading(options: DirectAgentOptions, onStep: (step: number) => void = () => undefined) {
  let step = 1;
  const agent = await startDirectAgent(
    database,
    (request) => {
      if (isSummaryRequest(request)) return goodSummary(request);
      onStep(step);
      if (step > 12) return says("It is done.");
      const offset = 1 + step++ * 5;
      return { parts: [text("Next."), call("read_file", { path: "big.txt", offset, limit: 60 })] };
    },
    options,
  );
  await agent.sandbox.files.write("big.txt", Buffer.from(mixedText(3, 400)));
  return agent;
}

it("the window is asked with the first answer; the smaller counts, and is said once", async () => {
  const agent = await reading({ documents: ollama(12_000), ...SUMMARIES_ONLY });
  expect(await playLoop(agent)).toMatchObject({ status: "completed" });
  const rounds = await roundsOf(database.store, agent.id);
  expect(rounds.length).toBeGreaterThan(0);
  expect(rounds.map(({ trigger }) => trigger)).toEqual(rounds.map(() => "threshold"));
  const started = await agent.dataOf("step:started");
  expect(Math.max(...started.map(({ estimatedInput }) => estimatedInput))).toBeLessThan(12_000);
  // The size at which room is made has its own name; `limit` keeps its meaning.
  expect(started.map(({ triggerTokens }) => triggerTokens)).toEqual(started.map(({ limit }) => limit));
  expect(await agent.dataOf("llm:unsupported-input")).toEqual([
    {
      mediaType: "window",
      message: expect.stringMatching(
        /runs gpt-4o with a window of 12000 .*OLLAMA_CONTEXT_LENGTH=32000.*num_ctx/,
      ),
    },
  ]);
});

it("an answer to a request that was cut is dropped, and the session is compacted to the window", async () => {
  let loaded: number | undefined;
  const agent = await reading(
    {
      documents: (path) => ollama(loaded)(path),
      ...SUMMARIES_ONLY,
    },
    // The server loads the model again, with less, once the conversation is longer than that.
    (step) => {
      if (step === 10) loaded = 10_000;
    },
  );
  expect(await playLoop(agent)).toMatchObject({ status: "completed" });
  const rounds = await roundsOf(database.store, agent.id);
  expect(rounds.map(({ trigger }) => trigger)).toContain("overflow");
  expect(await agent.dataOf("llm:error")).toMatchObject([
    { class: "overflow", final: false, message: expect.stringMatching(/cut off.*OLLAMA_CONTEXT_LENGTH/) },
  ]);
  // Of thirteen answers one is dropped.
  expect(await answersOf(database.store, agent.id)).toHaveLength(12);
});

it("a cut answer completes no task whose beginning does not fit: the failure gives advice", async () => {
  const agent = await startDirectAgent(
    database,
    (request) => (isSummaryRequest(request) ? goodSummary(request) : says("Roses are red.")),
    { documents: ollama(1_500) },
  );
  expect(await playLoop(agent)).toMatchObject({ status: "ContextOverflow" });
  const reasons = (await agent.dataOf("session:ended")).map(({ reason }) => reason);
  expect(reasons).toEqual([expect.stringMatching(/window of 1500 .*OLLAMA_CONTEXT_LENGTH=32000/)]);
  expect(await answersOf(database.store, agent.id)).toEqual([]);
});

it.each([
  ["a larger window", ollama(64_000)],
  ["a server that does not say", () => undefined],
  [
    "words that are none",
    () => ({ models: "many", default_generation_settings: { n_ctx: "small" }, data: 7 }),
  ],
])("%s changes nothing", async (_, documents) => {
  const agent = await reading({ documents });
  expect(await playLoop(agent)).toMatchObject({ status: "completed" });
  expect(await agent.dataOf("llm:unsupported-input")).toEqual([]);
  expect(await agent.dataOf("llm:error")).toEqual([]);
});
