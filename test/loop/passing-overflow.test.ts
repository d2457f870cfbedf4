/** Overflows that pass: a window that other requests fill too, and the window of another server behind a gateway. */
import { expect, it } from "vitest";
import { findSession } from "../../activities/store/sessions.ts";
import { openDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { mixedText } from "../support/mixed-text.ts";
import { call, text, type Turn } from "../support/scripted-model.ts";
import { says } from "../support/scripted-summaries.ts";
import { billsOf } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

/** Attempts of one step, until one does not end in a failure that is retried. @returns the failures' messages, and the outcome */
async function attempts(agent: DirectAgent, step: number, most = 12) {
  const failures: string[] = [];
  for (let attempt = 1; attempt <= most; attempt += 1) {
    try {
      const outcome = await agent.perform("modelStep", { step }, { attempt });
      return { failures, outcome };
    } catch (error) {
      expect(error).toMatchObject({ type: "ModelUnavailable", nonRetryable: false });
      failures.push(String(error));
    }
  }
  return { failures };
}

const FULL = { type: "error", code: "server_error", message: "Context size has been exceeded." } as const;

it.each([
  ["in mid-stream", { parts: [text("I was about"), FULL] }],
  ["before its answer, with a request that is small by our count", { parts: [FULL] }],
] as const)("a request that a shared window has no room for %s is asked again", async (_, full) => {
  let refusals = 3;
  const agent = await openDirectAgent(database, () => (refusals-- > 0 ? full : says("Here I am.")), {
    config: { api: "chat" },
  });
  const { failures, outcome } = await attempts(agent, 1);
  expect(outcome).toMatchObject({ kind: "answered", finish: "stop" });
  expect(failures).toHaveLength(3);
  expect(failures[0]).toContain("share one window");
  const said = await agent.dataOf("llm:error");
  expect(said).toMatchObject(Array.from({ length: 3 }, () => ({ class: "unavailable", final: false })));
});

it("a window that stays full is an overflow after eight attempts", async () => {
  const agent = await openDirectAgent(database, () => ({ parts: [FULL] }), { config: { api: "chat" } });
  const { failures, outcome } = await attempts(agent, 1);
  expect(failures).toHaveLength(7);
  expect(outcome).toMatchObject({ kind: "overflow", by: "provider" });
  expect(outcome).toMatchObject({ said: expect.stringContaining("Context size has been exceeded") });
});

it("a request as large as the window is an overflow at once", async () => {
  const agent = await openDirectAgent(database, () => ({ parts: [FULL] }), {
    config: { api: "chat", contextWindow: 8_000, maxOutput: 500 },
    task: mixedText(1, 300),
  });
  const { failures, outcome } = await attempts(agent, 1);
  expect([failures, outcome?.kind]).toEqual([[], "overflow"]);
});

const exceeds = (tokens: number) => ({
  error: {
    status: 400,
    body: {
      error: { message: `request (9000 tokens) exceeds the available context size (${tokens} tokens)` },
    },
  },
});

/** A session in whose second step a smaller window is named than the request that was answered in the first. */
async function withStandIn(refusals: number) {
  let left = refusals;
  const read = { parts: [call("read_file", { path: "big.txt", limit: 300 })] };
  const script: Turn = (_, index) => {
    if (index === 0) return read;
    return left-- > 0 ? exceeds(4_000) : says("Done.");
  };
  const agent = await openDirectAgent(database, script, { task: mixedText(7, 120) });
  await agent.sandbox.files.write("big.txt", Buffer.from(mixedText(3, 400)));
  await agent.step(1);
  const [bill] = await billsOf(database.store, agent.id);
  expect(bill?.inputTokens).toBeGreaterThan(4_000);
  return agent;
}

const windowOf = async ({ id }: DirectAgent) =>
  (await findSession(database.store.db, id))?.config.contextWindow;

it("a window smaller than what the model has answered is another server's: it is asked again", async () => {
  const agent = await withStandIn(2);
  const { failures, outcome } = await attempts(agent, 2);
  expect(outcome).toMatchObject({ kind: "answered" });
  expect(failures).toHaveLength(2);
  expect(failures[0]).toContain("another server's window");
  expect(await windowOf(agent)).toBe(32_000);
});

it("a smaller window that stays is believed until the run ends", async () => {
  const agent = await withStandIn(100);
  const { failures, outcome } = await attempts(agent, 2);
  expect(failures).toHaveLength(7);
  expect(outcome).toMatchObject({ kind: "overflow", servedWindow: 4_000 });
  expect(await windowOf(agent)).toBe(4_000);
  const ofRun = async (continued: object) =>
    (await agent.perform("openSession", { chain: agent.runId, ...continued })).policy.budget.contextWindow;
  const first = agent.runId;
  agent.runId = "run-2";
  expect(await ofRun({ continuedStep: 1, continuedRound: 0, continuedFrom: first })).toBe(4_000);
  agent.runId = "run-3";
  expect(await ofRun({})).toBe(32_000);
  expect(await windowOf(agent)).toBe(32_000);
});

it("a window into which no task fits is no session's", async () => {
  const agent = await openDirectAgent(database, () => exceeds(1_024));
  const { failures, outcome } = await attempts(agent, 1);
  expect(failures).toEqual([]);
  expect(outcome).toMatchObject({ kind: "overflow", said: expect.stringContaining("(1024 tokens)") });
  expect(outcome).not.toHaveProperty("servedWindow");
  expect(await windowOf(agent)).toBe(32_000);
});
