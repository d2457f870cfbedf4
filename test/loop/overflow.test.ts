/** A request that the provider finds too long: compacted, taken again, compacted harder, ended with its reason. */
import { describe, expect, it } from "vitest";
import { readEvents } from "../../activities/store/events.ts";
import type { HttpError, Reply } from "../support/model-server/wire.ts";
import {
  guidance,
  startDirectAgent,
  type DirectAgent,
  type DirectAgentOptions,
} from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { mixedText } from "../support/mixed-text.ts";
import { call, countTokens, text, type Turn } from "../support/scripted-model.ts";
import { goodSummary, isSummaryRequest, says, wordsOf } from "../support/scripted-summaries.ts";
import { answersOf, transcriptOf, roundsOf, billsOf } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

const { stringify } = JSON;
const stepsAsked = async ({ id }: DirectAgent) =>
  (await billsOf(database.store, id)).filter(({ purpose }) => purpose === "step");

async function start(script: Turn, options: DirectAgentOptions = {}): Promise<DirectAgent> {
  const agent = await startDirectAgent(database, script, options);
  await agent.sandbox.files.write("big.txt", Buffer.from(mixedText(3, 400)));
  return agent;
}

const SUMMARIES_ONLY = {
  config: { context: { strategy: "threshold-turns", options: { prune: "never" } } },
} as const;

const read = (step: number, limit = 30): Reply => ({
  parts: [text(`Step ${step}.`), call("read_file", { path: "big.txt", offset: 1 + step * 5, limit })],
});

/** Steps that read; before the answer of step `at`, what is given there, in turn. */
function stumbling(
  at: number,
  stumbles: readonly Reply[],
  total: number,
): Extract<Turn, (...given: never) => unknown> {
  let step = 1;
  let stumbled = 0;
  return (request) => {
    if (isSummaryRequest(request)) return goodSummary(request);
    if (step === at && stumbled < stumbles.length) return stumbles[stumbled++] ?? says("");
    return step < total ? read(step++) : says("It is done.");
  };
}

const http = (status: number, message?: string, code?: string): Reply => {
  const body =
    message === undefined
      ? undefined
      : { error: { message, type: "error", param: null, code: code ?? null } };
  const error: HttpError = body === undefined ? { status } : { status, body };
  return { error };
};

const spellings: readonly (readonly [string, Reply])[] = [
  ["400 with its code", http(400, "It does not fit.", "context_length_exceeded")],
  ["400 in words", http(400, "prompt is too long: 213462 tokens > 200000 maximum")],
  ["400 in a compatible server's words", http(400, "the request exceeds the available context size")],
  ["413 without a body", http(413)],
  ["500 in words", http(500, "Input is too long for requested model.")],
  [
    "an error within a 200 stream",
    {
      parts: [
        { type: "error", code: "context_length_exceeded", message: "Your input exceeds the context window." },
      ],
    },
  ],
  [
    "an error in the middle of an answer",
    {
      parts: [
        text("I was about to"),
        { type: "error", code: "context_length_exceeded", message: "Your input exceeds the context window." },
      ],
    },
  ],
];

it("that names its server's window is compacted to it, and the window counts from then on", async () => {
  let refused = 0;
  let step = 1;
  const served = 12_000;
  const agent = await start((request) => {
    if (isSummaryRequest(request)) return goodSummary(request);
    if (request.inputTokens <= served) return step < 12 ? read(step++, 80) : says("It is done.");
    refused += 1;
    const message = `request (${request.inputTokens} tokens) exceeds the available context size (${served} tokens), try increasing it`;
    const error = { code: 400, message, type: "exceed_context_size_error", n_ctx: served };
    return { error: { status: 400, body: { error } } };
  }, SUMMARIES_ONLY);
  expect(await playLoop(agent)).toMatchObject({ status: "completed", state: { step: 12 } });
  expect(refused).toBe(1);
  const rounds = await roundsOf(database.store, agent.id);
  expect(rounds[0]?.trigger).toBe("overflow");
  expect(rounds.slice(1).every(({ trigger }) => trigger === "threshold")).toBe(true);
  const said = (await readEvents(database.store.db, agent.id, 0, 1_000)).filter(
    ({ type }) => type === "llm:error",
  );
  expect(said).toMatchObject([
    { data: { class: "overflow", message: expect.stringContaining(`context size (${served} tokens)`) } },
  ]);
});

describe.each(["responses", "chat"] as const)("on the %s wire, a provider's overflow", (api) => {
  it.each(spellings)(
    "as %s is followed by a compaction and the same step again, and leaves no half answer",
    { tags: ["case-11", "case-12", "R40"] },
    async (_spelling, stumble) => {
      const agent = await start(stumbling(8, [stumble], 10), { config: { api } });
      const end = await playLoop(agent);
      expect(end).toMatchObject({ status: "completed", state: { step: 10, round: 1 } });
      expect(await roundsOf(database.store, agent.id)).toMatchObject([
        { status: "compacted", trigger: "overflow", step: 8 },
      ]);
      const asked = await stepsAsked(agent);
      expect(asked.filter((row) => row.step === 8).map((row) => row.status)).toEqual(["wasted", "kept"]);
      const answers = await answersOf(database.store, agent.id);
      expect(answers.map((row) => row.step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      expect(stringify(answers.map((row) => row.content))).not.toContain("about to");
    },
  );

  it(
    "that comes twice leads to a stronger round without a model, and ever smaller requests",
    { tags: ["case-11", "A18"] },
    async () => {
      const tooLong = http(400, "It does not fit.", "context_length_exceeded");
      const agent = await start(stumbling(8, [tooLong, tooLong], 10), { config: { api } });
      expect(await playLoop(agent)).toMatchObject({ status: "completed", state: { step: 10 } });
      const stumbled = agent.model.log.findIndex((served) => served.status === 400);
      const sizes = agent.model.log
        .slice(stumbled)
        .flatMap(({ request }) =>
          request === undefined || isSummaryRequest(request) ? [] : [request.inputTokens],
        )
        .slice(0, 3);
      expect(sizes).toHaveLength(3);
      expect(sizes).toEqual(sizes.toSorted((one, other) => other - one));
      expect(new Set(sizes).size).toBe(3);
      expect(agent.model.requests.filter(isSummaryRequest)).toHaveLength(1);
    },
  );

  it(
    "that never ends is a typed end after three requests, and the session can be resumed",
    { tags: ["case-10", "case-11"] },
    async () => {
      const tooLong = http(400, "It does not fit.", "context_length_exceeded");
      const agent = await start(stumbling(8, [tooLong, tooLong, tooLong], 10), { config: { api } });
      expect((await playLoop(agent)).status).toBe("ContextOverflow");
      const ofStep = (await stepsAsked(agent)).filter((row) => row.step === 8);
      expect(ofStep.map((row) => row.status)).toEqual(["wasted", "wasted", "wasted"]);
      expect((await answersOf(database.store, agent.id)).map((row) => row.step)).toEqual([
        1, 2, 3, 4, 5, 6, 7,
      ]);
      agent.runId = "run-2";
      const again = await playLoop(agent, {
        guidanceAt: (step) => (step === 8 ? [guidance("Try again.")] : []),
      });
      expect(again).toMatchObject({ status: "completed", state: { step: 10 } });
    },
  );
});

describe("what does not fit by itself", () => {
  it(
    "as one message is shown cut, with a handle to the whole, and its row stays as it was",
    { tags: ["case-10"] },
    async () => {
      const task = mixedText(1, 900);
      const agent = await start(() => says("I have read its ends."), {
        task,
        config: { contextWindow: 8_000, maxOutput: 500 },
      });
      expect((await playLoop(agent)).status).toBe("completed");
      expect(agent.model.log.map((served) => served.status)).toEqual([200]);
      const [asked] = agent.model.requests;
      const words = asked === undefined ? "" : wordsOf(asked);
      expect(words).toContain("read_output handle=");
      for (const end of [task.slice(0, 200), task.slice(-200)])
        expect(words).toContain(stringify(end).slice(1, -1));
      const [row] = await transcriptOf(database.store, agent.id);
      expect(row?.content).toEqual([{ type: "text", text: task }]);
    },
  );

  it(
    "as the tools alone is a typed end after three looks, without a request and without a round",
    { tags: ["case-10"] },
    async () => {
      const agent = await start(() => says("No one asks."), {
        config: { contextWindow: 2_000, maxOutput: 200 },
      });
      expect((await playLoop(agent)).status).toBe("ContextOverflow");
      expect(agent.model.log).toEqual([]);
      expect(await roundsOf(database.store, agent.id)).toEqual([]);
    },
  );
});

describe("a model that counts more than we do", () => {
  const fifthMore = (value: string) => Math.ceil(countTokens(value) * 1.2);

  it("by a fifth is learned from its bills: no request is refused", async () => {
    const agent = await start(stumbling(0, [], 60), {
      countTokens: fifthMore,
      config: {
        ...SUMMARIES_ONLY.config,
        model: "openai/counts-more",
        contextWindow: 16_000,
        maxOutput: 1_000,
      },
    });
    expect(await playLoop(agent)).toMatchObject({ status: "completed", state: { step: 60 } });
    expect(agent.model.log.filter((served) => served.status !== 200)).toEqual([]);
    expect((await roundsOf(database.store, agent.id)).length).toBeGreaterThanOrEqual(3);
  });

  it("and bills nothing is survived by its word: each refused step is taken again, none is lost", async () => {
    const steps = stumbling(0, [], 60);
    const unbilled: Turn = async (request, index) => ({ ...(await steps(request, index)), usage: null });
    const agent = await start(unbilled, {
      countTokens: (value) => Math.ceil(countTokens(value) * 1.6),
      config: {
        model: "openai/never-bills",
        contextWindow: 16_000,
        maxOutput: 1_000,
        context: { strategy: "threshold-rounds", options: { trigger: 0.95 } },
      },
    });
    expect(await playLoop(agent)).toMatchObject({ status: "completed", state: { step: 60 } });
    expect((await answersOf(database.store, agent.id)).map((row) => row.step)).toEqual(
      Array.from({ length: 60 }, (_, index) => index + 1),
    );
    expect((await roundsOf(database.store, agent.id)).some((round) => round.trigger === "overflow")).toBe(
      true,
    );
  });
});

it("bills of ten times the requests start no compaction, and are reported as doubtful", async () => {
  let step = 0;
  const agent = await start((request) => {
    step += 1;
    const input = 10 * request.inputTokens;
    return { ...(step < 10 ? read(step, 5) : says("It is done.")), usage: { input } };
  });
  expect(await playLoop(agent)).toMatchObject({ status: "completed", state: { step: 10, round: 0 } });
  expect(await roundsOf(database.store, agent.id)).toEqual([]);
  const events = await readEvents(database.store.db, agent.id, 0, 1_000);
  const answers = events.filter(({ type }) => type === "llm:response");
  // Four in a row are not an accident; then people are informed, once.
  const doubtful = answers.map(({ data }) => (data as { usageDoubtful?: true }).usageDoubtful === true);
  expect(doubtful).toEqual(answers.map((_, index) => index === 3));
});

it(
  "bills of a server that cuts requests are reported once, and nothing is learned from them",
  { tags: ["S11"] },
  async () => {
    let step = 0;
    const agent = await start((request) => {
      if (isSummaryRequest(request)) return goodSummary(request);
      step += 1;
      const input = Math.min(request.inputTokens, 8_000);
      return { ...(step < 40 ? read(step, 30) : says("It is done.")), usage: { input, cached: 0 } };
    }, SUMMARIES_ONLY);
    expect(await playLoop(agent)).toMatchObject({ status: "completed", state: { step: 40 } });
    expect((await roundsOf(database.store, agent.id)).length).toBeGreaterThan(0);
    const events = await readEvents(database.store.db, agent.id, 0, 10_000);
    const reports = events.filter(
      ({ type, data }) => type === "llm:response" && (data as { usageDoubtful?: true }).usageDoubtful,
    );
    expect(reports).toHaveLength(1);
  },
);

it(
  "an answer billed beyond the window is kept, and the next step begins with a compaction",
  { tags: ["case-31"] },
  async () => {
    let step = 0;
    const agent = await start((request) => {
      if (isSummaryRequest(request)) return goodSummary(request);
      step += 1;
      if (step === 6) return { ...read(step, 50), usage: { input: 40_000 } };
      return step < 9 ? read(step, 50) : says("It is done.");
    });
    expect(await playLoop(agent)).toMatchObject({ status: "completed", state: { step: 9, round: 1 } });
    expect(await roundsOf(database.store, agent.id)).toMatchObject([
      { status: "compacted", trigger: "threshold", step: 7 },
    ]);
  },
);
