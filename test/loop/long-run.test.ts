/** A thousand steps in a small window: what a long task must not lose, and what a provider must never refuse. */
import { asc, eq } from "drizzle-orm";
import { expect, it } from "vitest";
import { messages } from "../../activities/store/schema/index.ts";
import type { ParsedRequest, Reply, ReplyPart } from "../support/model-server/wire.ts";
import { directConfig, guidance, startDirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { call, text, thought } from "../support/scripted-model.ts";
import { goodSummary, isSummaryRequest, says, wordsOf } from "../support/scripted-summaries.ts";
import { useDatabase } from "../support/test-database.ts";
import { mixedText } from "../support/mixed-text.ts";
import { roundsOf, billsOf } from "../support/stored.ts";

const database = useDatabase();

const STEPS = 1_000;
const TASK = "Build the importer for the harbour's timetable, and never touch the folder legacy.";
const RULES = "- Dates are ISO 8601.\n- Every module has a test.";
const saidAt = (step: number) =>
  `Remark ${step}: module m${step % 23} belongs to the people of quay ${step}.`;
const FILES = 40;

it(
  "a task of a thousand steps in a 32k window never overflows, and forgets no rule or fact",
  { tags: ["case-6", "invariant-4"], timeout: 900_000 },
  async () => {
    let lastSaid = "";
    let asked = 0;
    const missing: string[] = [];
    const agent = await startDirectAgent(
      database,
      (request: ParsedRequest): Reply => {
        if (isSummaryRequest(request)) return goodSummary(request);
        asked += 1;
        const words = wordsOf(request);
        for (const [what, there] of [
          ["task", words.includes(TASK)],
          ["rules", request.system.includes(RULES)],
          ["guidance", words.includes(lastSaid)],
        ] as const)
          if (!there) missing.push(`${what} in step ${asked}`);
        return asked === STEPS ? says("The importer is built.") : stepReply(asked);
      },
      {
        task: TASK,
        instructions: RULES,
        keepRequests: false,
        config: {
          model: "openai/o3",
          context: { strategy: "threshold-rounds", options: {} },
          limits: { ...directConfig().limits, maxSteps: STEPS + 1 },
        },
        served: { o3: { window: 32_000, maxOutput: 2_000, reasoning: true } },
      },
    );
    for (let file = 0; file < FILES; file++)
      await agent.sandbox.files.write(
        `data/part-${file}.txt`,
        Buffer.from(mixedText(file, 60 + ((file * 37) % 240))),
      );

    const end = await playLoop(agent, {
      guidanceAt: (step) => {
        if (step % 41 !== 0) return [];
        lastSaid = saidAt(step);
        return [guidance(lastSaid)];
      },
    });
    expect(end).toMatchObject({ status: "completed", state: { step: STEPS } });
    expect(missing).toEqual([]);
    // The server refuses overflows by a real tokenizer's count, and orphans, with a 400.
    expect(agent.model.log.filter((served) => served.status !== 200)).toEqual([]);

    const { db } = database.store;
    const rounds = await roundsOf(database.store, agent.id);
    expect(rounds.length).toBeGreaterThanOrEqual(20);
    expect(rounds.map((round) => round.round)).toEqual(rounds.map((_, place) => place + 1));
    expect(rounds.every((round) => round.status === "compacted")).toBe(true);
    const rows = await db
      .select()
      .from(messages)
      .where(eq(messages.sessionId, agent.id))
      .orderBy(asc(messages.sequence));
    // Each message is in the view or in exactly one round, and within the range that this round names.
    for (const row of rows) {
      expect(row.isCompacted).toBe(row.compactedRound !== null);
      const round = rounds.find((candidate) => candidate.round === row.compactedRound);
      if (round === undefined) continue;
      expect(row.sequence).toBeGreaterThanOrEqual(round.fromSequence ?? Infinity);
      expect(row.sequence).toBeLessThanOrEqual(round.toSequence ?? 0);
    }

    expect(rounds.at(-1)?.summaryContent).toContain("FACT-1 is plum");
    const found = rows.findLast((row) => row.role === "tool");
    expect(JSON.stringify(found?.content)).toContain("the secret berth is number 4711");

    const bills = await billsOf(database.store, agent.id);
    const errors = bills
      .filter((bill) => bill.purpose === "step" && !bill.estimatePure)
      .map((bill) => Math.abs(bill.estimatedInput / (bill.inputTokens ?? 1) - 1))
      .toSorted((a, b) => a - b);
    const at = (share: number) => `${((errors[Math.floor(errors.length * share)] ?? 0) * 100).toFixed(2)} %`;
    console.log(
      `${STEPS} steps, ${rounds.length} rounds, ${end.prunes} prunes, largest request ${Math.max(...bills.map((bill) => bill.inputTokens ?? 0))} tokens; estimate off by ${at(0.5)} (median), ${at(0.95)} (p95)`,
    );
  },
);

/** Reads, writes and runs things, one to three calls at once, each with other words. */
function stepReply(step: number): Reply {
  const parts: ReplyPart[] = [thought(`Step ${step}: what comes next is part ${step % FILES}.`)];
  if (step === 1) return { parts: [...parts, call("bash", { command: "echo FACT-1 is plum" })] };
  if (step === 2) parts.push(text("The harbour master says the secret berth is number 4711."));
  if (step === STEPS - 1) return { parts: [...parts, call("search_history", { query: "secret berth" })] };
  parts.push(
    call("read_file", {
      path: `data/part-${step % FILES}.txt`,
      offset: 1 + (step % 30),
      limit: 20 + (step % 60),
    }),
  );
  if (step % 3 === 0)
    parts.push(
      call("write_file", { path: `src/m${step % 23}/f${step % 70}.ts`, content: mixedText(step, 12) }),
    );
  if (step % 10 === 0) parts.push(call("grep_content", { pattern: `quay ${step % 7}`, path: "data" }));
  if (step % 100 === 50)
    parts.push(call("todo", { items: [{ text: `milestone ${step}`, status: "in_progress" }] }));
  return { parts };
}
