/**
 * The acceptance task: the flashcard application, built by the rehearsal model in a window of 16k tokens, with real
 * services. Uses the default strategy; `LONGHAUL_STRATEGIES=all` (or names with commas) runs it with others.
 */
import { expect, it } from "vitest";
import { strategyNames, type StrategyName } from "../../activities/config/strategies.ts";
import { readEvents } from "../../activities/store/events.ts";
import { FLASHCARDS } from "../../examples/rehearsal/flashcards/last-steps.ts";
import { createRehearsal } from "../../examples/rehearsal/rehearsal.ts";
import { answersOf, resultTexts, roundsOf, billsOf } from "../support/stored.ts";
import { useAgent } from "../support/agent-harness.ts";

const agent = useAgent();

const asked = process.env["LONGHAUL_STRATEGIES"] ?? "threshold-turns";
const chosen = strategyNames.filter((name) => asked === "all" || asked.split(",").includes(name));

const MODEL = { window: 16_000, maxOutput: 2_000, reasoning: true } as const;

it.each(chosen)(
  "the application is built in over 60 steps and three rounds of %s, without an overflow",
  async (strategy: StrategyName) => {
    const began = Date.now();
    const session = await agent.start(createRehearsal({ script: FLASHCARDS, delayMs: 0 }), {
      task: "Build a flashcard application.",
      served: { flashcards: MODEL },
      config: {
        model: "openai/flashcards",
        contextWindow: MODEL.window,
        maxOutput: MODEL.maxOutput,
        input: ["text"],
        context: { strategy },
      },
    });
    const end = await session.handle.result();
    expect(end).toMatchObject({ status: "completed" });
    expect(end.steps).toBeGreaterThan(60);
    expect(session.model.log.filter((served) => served.status !== 200)).toEqual([]);
    const { store } = agent.database;
    const rounds = await roundsOf(store, session.id);
    expect(rounds.filter((round) => round.status === "compacted").length).toBeGreaterThanOrEqual(3);
    // Where that is enough, old results are hidden instead.
    const events = await readEvents(store.db, session.id, 0, 10_000);
    expect(events.map(({ type }) => type)).toContain("context:pruned");
    // Each step of the script came once, in order, and every failure was intended.
    const answers = await answersOf(store, session.id);
    const said = JSON.stringify(answers.map((row) => row.content));
    expect(said.match(/not what the script expects.{0,300}/g)).toBeNull();
    const results = await resultTexts(store, session.id);
    expect(results.findLast((text) => text.includes(" pass "))).toMatch(/pass 63\nℹ fail 0\n/);
    // Without a network it says what it leaves out.
    expect(results.filter((text) => text.includes("No package registry is reachable"))).toHaveLength(2);
    expect(results.at(-1)).toMatch(/Add the README/);
    expect(end.result).toMatch(/This was the \*\*rehearsal model\*\*/);
    const calls = await billsOf(store, session.id);
    const minutes = ((Date.now() - began) / 60_000).toFixed(1);
    const input = calls.reduce((sum, call) => sum + (call.inputTokens ?? 0), 0);
    const cached = calls.reduce((sum, call) => sum + (call.cachedTokens ?? 0), 0);
    console.log(
      `${strategy}: ${end.steps} steps, ${rounds.length} rounds (${rounds.map((round) => round.trigger[0]).join("")}), ${calls.filter((call) => call.purpose === "summary").length} summary calls, ${Math.round(input / 1_000)}k input tokens (${Math.round((cached / input) * 100)} % cached), ${minutes} min`,
    );
  },
  1_200_000,
);
