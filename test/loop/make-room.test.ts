/** What makes room before a step, and in which order: the waiting messages are drained, old results are hidden, a summary is made. */
import { expect, it } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { readEvents } from "../../activities/store/events.ts";
import { directConfig, guidance, startDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { mixedText } from "../support/mixed-text.ts";
import { call, text } from "../support/scripted-model.ts";
import { isSummaryRequest, longSession, says, wordsOf } from "../support/scripted-summaries.ts";
import { roundsOf } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

type Options = RunConfig["context"]["options"];

interface Session {
  readonly window: number;
  readonly reads: number;
  /** Lines of each result. */
  readonly lines: number;
  readonly strategy?: RunConfig["context"]["strategy"];
  readonly options?: Options;
  /** What the service holds, if that is less than what is configured. */
  readonly served?: number;
}

/** A task of some reads of one file, at different places. */
async function start(session: Session): Promise<DirectAgent> {
  const { window, reads, lines, strategy = "threshold-turns", options = {}, served = window } = session;
  const steps = Array.from({ length: reads }, (_, at) => ({
    parts: [text(`Part ${at}.`), call("read_file", { path: "big.txt", offset: 1 + at * 3, limit: lines })],
  }));
  const agent = await startDirectAgent(database, longSession({ steps: [...steps, says("Done.")] }), {
    task: "Read all of it.",
    served: { "gpt-4o": { window: served, maxOutput: 1_000 } },
    config: {
      contextWindow: window,
      maxOutput: 1_000,
      context: { strategy, options },
      limits: { ...directConfig().limits, maxSteps: 200 },
    },
  });
  await agent.sandbox.files.write("big.txt", Buffer.from(mixedText(3, 2_500)));
  return agent;
}

async function eventsOf(agent: DirectAgent) {
  return readEvents(database.store.db, agent.id, 0, 10_000);
}

const summaries = (agent: DirectAgent) => agent.model.requests.filter(isSummaryRequest).length;
const refused = (agent: DirectAgent) => agent.model.log.filter(({ status }) => status !== 200).length;

it("in a small window old results are hidden first; no summary is made while that is enough", async () => {
  const agent = await start({ window: 16_000, reads: 10, lines: 60 });
  const end = await playLoop(agent);
  expect(end.status).toBe("completed");
  expect(end.prunes).toBeGreaterThan(0);
  const events = await eventsOf(agent);
  const first = events.find(({ type }) => type === "context:pruned" || type === "context:compressing");
  expect(first?.type).toBe("context:pruned");
  expect(summaries(agent)).toBe(0);
  expect(refused(agent)).toBe(0);
  expect(wordsOf(agent.model.requests.at(-1) as never)).toContain("[Old tool result content cleared]");
});

it("in a large window the summary comes first, and nothing is hidden", async () => {
  const agent = await start({ window: 128_000, reads: 12, lines: 400 });
  const end = await playLoop(agent);
  expect(end).toMatchObject({ status: "completed", prunes: 0 });
  expect(summaries(agent)).toBeGreaterThan(0);
  expect((await eventsOf(agent)).some(({ type }) => type === "context:pruned")).toBe(false);
});

it("with prune always, the newest 40,000 tokens of results stay; 20,000 older ones are hidden", async () => {
  const agent = await start({ window: 1_000_000, reads: 9, lines: 400, options: { prune: "always" } });
  const end = await playLoop(agent);
  const events = await eventsOf(agent);
  const hidden = events.flatMap((event) => (event.type === "context:pruned" ? [event.data] : []));
  const results = events.flatMap((event) => (event.type === "llm:tool-result" ? [event] : []));
  expect(results).toHaveLength(9);
  expect(hidden.length).toBeGreaterThan(0);
  for (const { savedTokens } of hidden as { savedTokens: number }[])
    expect(savedTokens).toBeGreaterThanOrEqual(20_000);
  expect(end.prunes).toBe(hidden.length);
  expect(summaries(agent)).toBe(0);
});

it("a message is drained before the compaction that it makes necessary, and is said once", async () => {
  const said = `Mind the pier. ${mixedText(11, 200)}`;
  const agent = await start({ window: 32_000, reads: 6, lines: 130, options: { prune: "never" } });
  const end = await playLoop(agent, {
    guidanceAt: (step) => (step === 6 ? [guidance(said)] : []),
  });
  expect(end).toMatchObject({ status: "completed", state: { round: 1 } });
  const order = (await eventsOf(agent))
    .filter(
      ({ step, type }) => step === 6 && /^(?:message:dequeued|context:compress|llm:response)/.test(type),
    )
    .map(({ type }) => type);
  expect(order).toEqual(["message:dequeued", "context:compressing", "context:compressed", "llm:response"]);
  const asked = agent.model.requests.filter((request) => !isSummaryRequest(request)).map(wordsOf);
  expect(asked.map((words) => words.split("Mind the pier.").length - 1)).toEqual([0, 0, 0, 0, 0, 1, 1]);
});

it.each([
  ["the provider refuses the request", 20_000, true],
  ["the request would not fit by our count", 32_000, false],
])("reactive-overflow compacts only when %s", async (_, served, isRefused) => {
  const agent = await start({
    window: 32_000,
    reads: 14,
    lines: 118,
    strategy: "reactive-overflow",
    options: { prune: "never" },
    served,
  });
  expect((await playLoop(agent)).status).toBe("completed");
  const rounds = await roundsOf(database.store, agent.id);
  expect(rounds.length).toBeGreaterThan(0);
  expect(refused(agent) > 0).toBe(isRefused);
  // The default's trigger is at 20,000 tokens of this window.
  if (!isRefused) for (const { tokensBefore } of rounds) expect(tokensBefore).toBeGreaterThan(27_000);
});

it("in a window full of instructions no model summarises, and each round is a row and a line", async () => {
  const agent = await start({ window: 4_000, reads: 8, lines: 8 });
  await playLoop(agent);
  expect(summaries(agent)).toBe(0);
  const rounds = await roundsOf(database.store, agent.id);
  const told = (await eventsOf(agent)).flatMap(({ type, data }) =>
    type === "context:compressed" ? [(data as { status: string }).status] : [],
  );
  expect(rounds.length).toBeGreaterThan(0);
  expect(told).toEqual(rounds.map(({ status }) => status));
});
