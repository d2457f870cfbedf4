/** The sessions whose histories are kept for replay, one for each shape a run may take. Not part of `npm test`. */
import { it } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { forkSession } from "../../client/sessions/fork-session.ts";
import { retrySession } from "../../client/sessions/retry-session.ts";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { FOLLOW_SIGNALS } from "../../activities/contract/follow.ts";
import { merged, playFollower, round, waits } from "../support/play-follower.ts";
import { eventually } from "../support/eventually.ts";
import { underPolicy } from "../support/operator-policy.ts";
import { untilWaiting } from "../support/questions.ts";
import { recordHistory } from "../support/history-fixture.ts";
import { resetToStep } from "../support/reset-run.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { longSession, noisyStep, says } from "../support/scripted-summaries.ts";
import { callRows } from "../support/stored.ts";

const agent = useAgent();

/** Ends the session, however it ends, and keeps its newest run's history. */
async function keep(shape: string, { id, handle }: RunningSession): Promise<void> {
  await handle.result().catch(() => undefined);
  await recordHistory(shape, agent.client.workflow.getHandle(id));
}

const bash = (command: string) => call("bash", { command });
const untilACallRuns = ({ id }: RunningSession) =>
  eventually("a call runs", async () => (await callRows(agent.database.store, id, "running")).length > 0);
const limits = (more: Partial<RunConfig["limits"]>) => ({
  config: (config: RunConfig): RunConfig => ({ ...config, limits: { ...config.limits, ...more } }),
});
const small = (contextWindow: number, servedWindow: number) => ({
  served: { "gpt-4o": { window: servedWindow, maxOutput: 1_000 } },
  config: (config: RunConfig): RunConfig => ({
    ...config,
    contextWindow,
    maxOutput: 1_000,
    // So that these shapes have a prune, too.
    context: {
      ...config.context,
      options: {
        ...config.context.options,
        prune: "always",
        pruneProtect: Math.round(0.2 * contextWindow),
        pruneMinimum: Math.round(0.15 * contextWindow),
      },
    },
  }),
});
const noisy = (count: number) => Array.from({ length: count }, (_, place) => noisyStep(place + 1, 80));

it("plain", async () => {
  const script = scriptedModel()
    .calls("write_file", { path: "a.txt", content: "a" })
    .calls("bash", { command: "cat a.txt" })
    .says("Done.");
  await keep("plain", await agent.start(script));
});

it("budget-question", async () => {
  const script = scriptedModel().answers(bash("echo one")).says("Done.");
  const session = await agent.start(script, limits({ maxSteps: 1, onLimit: "ask" }));
  await untilWaiting(agent.database.store, session);
  await session.handle.signal("answer", { option: 1 });
  await keep("budget-question", session);
});

it("over-budget", async () => {
  underPolicy(agent, { budgets: [{ per: "tenant", of: "asks", period: "month", usd: 1 }] });
  const usage = { input: 20_000, output: 1_000, cached: 0, reasoning: 0 };
  const script = scriptedModel();
  for (let step = 1; step <= 3; step += 1) script.answers(bash("echo one")).with({ usage });
  const session = await agent.start(script.says("Done."), {
    owner: "ann",
    config: { tenant: "asks", price: { input: 10, cached: 10, output: 100 }, maxOutput: 4_000 },
  });
  await untilWaiting(agent.database.store, session);
  await session.handle.signal("answer", { text: "$9", by: "ann" });
  await keep("over-budget", session);
});

it("parallel-tools", async () => {
  const script = scriptedModel()
    .answers(bash("sleep 0.5; echo one"), bash("echo two"), bash("sleep 0.2; exit 3"))
    .says("Done.");
  await keep("parallel-tools", await agent.start(script));
});

it("guidance", async () => {
  const script = scriptedModel().answers(bash("sleep 2")).says("Understood.").says("That as well.");
  const session = await agent.start(script);
  await untilACallRuns(session);
  await session.handle.signal("guidance", { id: "a", text: "use tabs" });
  await session.handle.signal("guidance", "and no semicolons");
  await session.handle.signal("guidance", 42 as never);
  await session.handle.executeUpdate("sendGuidance", { args: [{ id: "c", text: "in English" }] });
  await keep("guidance", session);
});

it("interrupt", async () => {
  const session = await agent.start(scriptedModel().answers(bash("sleep 60")).says("Something else then."));
  await untilACallRuns(session);
  await session.handle.signal("interrupt", { id: "i", text: "do something else" });
  await keep("interrupt", session);
});

it("cancel-mid-stream", async () => {
  const session = await agent.start(scriptedModel().answers(text("I begin"), { type: "hang" }));
  await session.until("llm:chunk");
  await session.handle.signal("guidance", { id: "late", text: "one more thing" });
  await session.handle.cancel();
  await keep("cancel-mid-stream", session);
});

it("cancel-mid-tool", async () => {
  const session = await agent.start(scriptedModel().answers(bash("sleep 60"), bash("sleep 61")));
  await untilACallRuns(session);
  await session.handle.cancel();
  await keep("cancel-mid-tool", session);
});

it("compaction", async () => {
  // Half of each step is the model's own words, which no prune hides.
  const steps = Array.from({ length: 14 }, (_, place) => {
    const { parts = [] } = noisyStep(place + 1, 40);
    return { parts: [text("The build goes on as it should. ".repeat(80)), ...parts] };
  });
  const script = longSession({ steps: [...steps, says("Done.")] });
  await keep("compaction", await agent.start(script, small(16_000, 16_000)));
});

it("manual-compaction", async () => {
  const script = longSession({ steps: [...noisy(4), { parts: [bash("sleep 2")] }, says("Done.")] });
  const session = await agent.start(script, {
    config: (config) => ({
      ...config,
      context: { ...config.context, options: { ...config.context.options, keepMessages: 2 } },
    }),
  });
  await session.until("llm:tool-call", (event) => event.data.about.includes("sleep 2"));
  await session.handle.signal("compact", { focus: "the port" });
  await keep("manual-compaction", session);
});

it("undo-compaction", async () => {
  const steps = [...noisy(4), { parts: [bash("sleep 2")] }, { parts: [bash("sleep 3")] }, says("Done.")];
  const session = await agent.start(longSession({ steps }), {
    config: (config) => ({
      ...config,
      context: { ...config.context, options: { ...config.context.options, keepMessages: 2 } },
    }),
  });
  await session.until("llm:tool-call", (event) => event.data.about.includes("sleep 2"));
  await session.handle.signal("compact", {});
  await session.until("llm:tool-call", (event) => event.data.about.includes("sleep 3"));
  // The second finds no round that is left.
  await session.handle.signal("undoCompaction");
  await session.handle.signal("undoCompaction");
  await keep("undo-compaction", session);
});

it("overflow", async () => {
  const script = longSession({ steps: [...noisy(7), says("Done.")] });
  await keep("overflow", await agent.start(script, small(32_000, 9_000)));
});

it("max-steps", async () => {
  const script = scriptedModel().answers(bash("echo one")).says("Here is where things stand.");
  await keep("max-steps", await agent.start(script, limits({ maxSteps: 1 })));
});

it("stuck", async () => {
  await keep("stuck", await agent.start(scriptedModel().forever({ parts: [bash("echo the same")] })));
});

it("failure", async () => {
  await keep("failure", await agent.start(scriptedModel().answers(bash("true")).fails(401, "No such key.")));
});

it("continue-as-new", async () => {
  const script = scriptedModel();
  for (let step = 1; step <= 8; step += 1) script.calls("bash", { command: `echo step ${step}` });
  const session = await agent.start(script.says("Done."), limits({ maxHistoryEvents: 50 }));
  await keep("continue-as-new-last", session);
  const { workflowExecutionInfo: info } = (await session.handle.describe()).raw;
  const first = info?.firstRunId ?? "";
  await recordHistory("continue-as-new-first", agent.client.workflow.getHandle(session.id, first));
});

it("reset", async () => {
  const script = scriptedModel();
  for (let step = 1; step <= 4; step += 1) script.calls("bash", { command: `echo step ${step}` });
  script.says("The first line.").calls("bash", { command: "echo again" }).says("The second line.");
  const session = await agent.start(script);
  await session.result();
  const runId = await resetToStep(agent.client, session.id, 3);
  const reset = agent.client.workflow.getHandle(session.id, runId);
  await reset.result();
  await recordHistory("reset", reset);
});

it("retry", async () => {
  const script = scriptedModel();
  for (let step = 1; step <= 8; step += 1) script.calls("bash", { command: `echo step ${step}` });
  script.says("The first line.").calls("bash", { command: "echo again" }).says("The second line.");
  const session = await agent.start(script, limits({ maxHistoryEvents: 50 }));
  await session.handle.result();
  const row = await sessionRow(agent, session.id);
  // Its third step was asked for by a run before the newest.
  const order = { fromStep: 3, dropMessages: false };
  const { runId } = await retrySession(clientServices(agent), row, order);
  const reset = agent.client.workflow.getHandle(session.id, runId);
  await reset.result();
  await recordHistory("retry", reset);
});

it("fork-of", async () => {
  const script = scriptedModel();
  for (let step = 1; step <= 3; step += 1) script.calls("bash", { command: `echo step ${step}` });
  script.says("The first line.").calls("bash", { command: "echo forked" }).says("The fork's line.");
  const session = await agent.start(script);
  await session.result();
  const forked = agent.adopt(`${session.id}-fork`, session);
  const order = { fromStep: 3, message: "Take the other way.", id: forked.id };
  await forkSession(clientServices(agent), await sessionRow(agent, session.id), order);
  await keep("fork-of", forked);
});

it("follower", async () => {
  const { handle } = await playFollower(
    (number, sessionId) =>
      [waits("checks run"), round(sessionId), waits("its rounds are used", { isPaused: true })][number - 1] ??
      merged,
    async (follower, done) => {
      const looks = (times: number) =>
        eventually("it has looked", () =>
          Promise.resolve(done.filter((one) => one === "look").length >= times),
        );
      await looks(1);
      await follower.signal(FOLLOW_SIGNALS.woken);
      await looks(3);
      await follower.signal(FOLLOW_SIGNALS.goOn, { rounds: 2 });
    },
  );
  await recordHistory("follower", handle);
});
