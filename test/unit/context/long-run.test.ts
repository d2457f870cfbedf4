import { expect, it } from "vitest";
import { compact } from "../../../activities/compaction/compact.ts";
import { tokensOf } from "../../../activities/transcript/boundary.ts";
import { budgetFor } from "../../../activities/config/budget.ts";
import type { Message, StoredMessage } from "../../../activities/contract/message.ts";
import { messageText } from "../../../activities/compaction/session-facts.ts";
import { lostFrom } from "../../../activities/compaction/summary-check.ts";
import { parseFiles, parseSections } from "../../../activities/compaction/summary-document.ts";
import { buildView } from "../../../activities/transcript/view.ts";
import { afterRound, compacted, summaryText } from "../../support/compacting.ts";
import { calls, result, rowsOf, user } from "../../support/rows.ts";

const PREFIX = 2_500;

/** A step: sometimes writes a file, runs commands with outputs of very different sizes, rarely gets a user message. */
function stepMessages(step: number): Message[] {
  const out: Message[] = [];
  if (step % 37 === 0) out.push(user(`Rule ${step}: never touch folder legacy-${step}.`));
  const asks = [{ id: `b${step}`, name: "bash", input: { command: `npm test -- ${step}` } }];
  if (step % 4 === 0)
    asks.push({
      id: `w${step}`,
      name: "write_file",
      input: { path: `src/m${step % 60}/f${step}.ts`, content: "x\n".repeat(20) } as never,
    });
  if (step % 50 === 9)
    asks.push({
      id: `t${step}`,
      name: "todo",
      input: { items: [{ text: `milestone ${step}`, status: "pending" }] } as never,
    });
  out.push(calls(`Step ${step}.`, ...asks));
  for (const ask of asks)
    out.push(
      result(
        ask.id,
        ask.name === "bash" ? "line of output 12345\n".repeat((step * 7) % 90) + "." : "ok",
        "completed",
        ask.name,
      ),
    );
  return out;
}

it.each([
  ["a model that writes little", 16_000, 300],
  ["a model that writes little", 32_000, 600],
  ["no model", 16_000, 300],
])(
  "a long run with %s in %i tokens stays under its trigger and forgets nothing in %i steps",
  async (writer, window, steps) => {
    const budget = budgetFor(window, { triggerRatio: 0.8, prefixTokens: PREFIX });
    let rows: StoredMessage[] = rowsOf([user("Build the importer. Keep every rule.")]);
    let round = 0;
    let written: string[] = [];
    let last: string | undefined;
    for (let step = 1; step <= steps; step++) {
      const next = Math.max(...rows.map((row) => row.sequence)) + 1;
      rows = [...rows, ...rowsOf(stepMessages(step), next, step - 1)];
      if (step % 4 === 0) written.push(`src/m${step % 60}/f${step}.ts`);
      if (PREFIX + tokensOf(rows) < budget.triggerTokens) continue;
      round++;
      const done = compacted(
        await compact(
          "threshold-rounds",
          {
            rows,
            budget,
            round,
            trigger: "threshold",
            prefixTokens: PREFIX,
            summariserRoomTokens: window,
            deterministic: writer === "no model",
          },
          (request) => {
            expect(request.tokens + request.maxOutputTokens).toBeLessThanOrEqual(window);
            return Promise.resolve({
              text: summaryText({ state: `At step ${step}.` }),
              finish: "stop",
              hasToolCall: false,
            });
          },
        ),
      );
      rows = afterRound(rows, done, round);
      expect(PREFIX + tokensOf(rows)).toBeLessThan(budget.triggerTokens);
      const view = buildView(rows);
      expect(view.repairs).toEqual([]);
      expect(rows[0]?.kind).toBe("task");
      if (last !== undefined) expect(lostFrom(last, done.summary)).toBeUndefined();
      last = done.summary;
      const paths = new Set(parseFiles(parseSections(last)["Completed Work"] ?? "").map((file) => file.path));
      const inView = JSON.stringify(rows);
      written = written.filter((path) => path !== "");
      for (const path of written) if (!paths.has(path)) expect(inView).toContain(path);
    }
    console.log(`${writer}, ${window} tokens: ${round} rounds, last summary ${last?.length} characters`);
    expect(round).toBeGreaterThanOrEqual(3);
    expect(messageText(rows[0]!)).toBe("Build the importer. Keep every rule.");
  },
);
