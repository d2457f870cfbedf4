import { describe, expect, it } from "vitest";
import { compact } from "../../../activities/compaction/compact.ts";
import { budgetFor } from "../../../activities/contract/budget.ts";
import type { StoredMessage } from "../../../activities/contract/message.ts";
import { textOf } from "../../../activities/compaction/session-facts.ts";
import { parseSections, SECTIONS } from "../../../activities/compaction/summary-document.ts";
import { estimateText } from "../../../activities/contract/tokens.ts";
import { buildView } from "../../../activities/transcript/view.ts";
import {
  afterRound,
  budget,
  compacted,
  filler,
  roundOf,
  scriptedSummariser,
  summaryText,
  work,
  writes,
  type Written,
} from "../../support/compacting.ts";
import { calls, result, rowsOf, user } from "../../support/rows.ts";

describe("threshold-rounds", () => {
  it("replaces old messages by a summary with every section, and keeps the task and ten messages", async () => {
    const rows = rowsOf([user("Build the app."), ...work(30)]);
    const { summarise, requests } = scriptedSummariser(summaryText({ state: "Half done." }));
    const done = compacted(await compact("threshold-rounds", roundOf(rows), summarise));
    expect(done.summary).toMatch(/^# Session Summary \(Compaction Round 1\)/);
    for (const section of SECTIONS) expect(done.summary).toContain(`## ${section}`);
    expect(done.summary).toContain("Half done.");
    expect(done.replaced).toEqual(Array.from({ length: 50 }, (_, index) => index + 2));
    expect(done.position).toBe(51.5);
    expect(done.after).toBeLessThan(done.before * 0.5);
    expect(requests).toHaveLength(1);
    const view = buildView(afterRound(rows, done, 1));
    expect(view.repairs).toEqual([]);
    expect(view.messages.map((message) => message.role).slice(0, 3)).toEqual([
      "user",
      "assistant",
      "assistant",
    ]);
  });

  it("carries facts over three compactions, and sends only new messages each time [case 5]", async () => {
    let rows = rowsOf([user("Build the app.")]);
    const prompts: string[] = [];
    for (const round of [1, 2, 3]) {
      const next = Math.max(...rows.map((row) => row.sequence)) + 1;
      rows = [
        ...rows,
        ...rowsOf(
          [...writes(`src/part-${round}.ts`), ...work(1, `FACT-${round} ${filler}`), ...work(24)],
          next,
          next,
        ),
      ];
      const facts = Array.from({ length: round }, (_, index) => `- FACT-${index + 1}`).join("\n");
      const { summarise, requests } = scriptedSummariser(summaryText({ decisions: facts }));
      const done = compacted(await compact("threshold-rounds", roundOf(rows, round), summarise));
      rows = afterRound(rows, done, round);
      prompts.push(requests[0]?.text ?? "");
    }
    const summaries = rows.filter((row) => row.kind === "summary");
    expect(summaries).toHaveLength(1);
    const last = textOf(summaries[0]!);
    for (const round of [1, 2, 3]) {
      expect(last).toContain(`FACT-${round}`);
      expect(last).toContain(`| src/part-${round}.ts | written |`);
    }
    expect(prompts[1]).toContain("(Compaction Round 1)");
    expect(prompts[2]).toContain("(Compaction Round 2)");
    const history = (prompt: string | undefined) => prompt?.slice(prompt.indexOf("<history>")) ?? "";
    expect(history(prompts[1])).toContain("FACT-2");
    expect(history(prompts[1])).not.toContain("FACT-1");
    expect(history(prompts[2])).not.toContain("FACT-2 ");
  });

  it("leaves each message in the view or in exactly one replaced range [case 6]", async () => {
    let rows = rowsOf([user("Build the app."), ...work(30)]);
    const replaced: number[] = [];
    const all = new Set(rows.map((row) => row.sequence));
    for (const round of [1, 2, 3]) {
      const { summarise } = scriptedSummariser(summaryText());
      const done = compacted(await compact("threshold-rounds", roundOf(rows, round), summarise));
      replaced.push(...done.replaced);
      rows = afterRound(rows, done, round);
      const next = Math.max(...rows.map((row) => row.sequence)) + 1;
      const more = rowsOf(work(25), next, next);
      for (const row of [...rows, ...more]) all.add(row.sequence);
      rows = [...rows, ...more];
    }
    const places = [...replaced, ...rows.map((row) => row.sequence)];
    expect(new Set(places).size).toBe(places.length);
    expect(new Set(places)).toEqual(all);
  });

  it("puts the person's focus into the prompt, and reports where there is nothing to do [case 29]", async () => {
    const { summarise, requests } = scriptedSummariser(summaryText());
    const rows = rowsOf([user("Build the app."), ...work(30)]);
    await compact(
      "threshold-rounds",
      roundOf(rows, 1, { trigger: "manual", focus: "the SM-2 formula" }),
      summarise,
    );
    expect(requests[0]?.text).toContain("the SM-2 formula");
    const none = scriptedSummariser();
    expect(await compact("threshold-rounds", roundOf(rowsOf([user("hi")])), none.summarise)).toMatchObject({
      kind: "nothing",
    });
    expect(none.requests).toHaveLength(0);
  });

  it("keeps less after an overflow, and only the live turn after the second [case 11]", async () => {
    const rows = rowsOf([user("Build the app."), ...work(30)]);
    const left = async (extra: Parameters<typeof roundOf>[2]) => {
      const { summarise } = scriptedSummariser(summaryText());
      const done = compacted(await compact("threshold-rounds", roundOf(rows, 1, extra), summarise));
      return rows.length - done.replaced.length;
    };
    const tailTokens = 2_400;
    expect(await left({ budget: { ...budget, tailTokens } })).toBe(11);
    expect(await left({ budget: { ...budget, tailTokens }, trigger: "overflow" })).toBeLessThan(11);
    expect(await left({ trigger: "overflow", deterministic: true })).toBe(3);
  });

  it("has nothing to replace if one message is larger than the window [case 10]", async () => {
    const small = budgetFor(4_000, { triggerRatio: 0.8 });
    const rows = rowsOf([user("word ".repeat(5_000))]);
    const done = await compact(
      "threshold-rounds",
      roundOf(rows, 1, { budget: small }),
      scriptedSummariser().summarise,
    );
    expect(done.kind).toBe("nothing");
  });
});

describe("facts that must not vanish", () => {
  const previous = async (rows: readonly StoredMessage[]) => {
    const { summarise } = scriptedSummariser(
      summaryText({ pending: "- [ ] add the importer\n- [ ] write the README\n- [x] set up tests" }),
    );
    const done = compacted(await compact("threshold-rounds", roundOf(rows), summarise));
    const next = afterRound(rows, done, 1);
    const from = Math.max(...next.map((row) => row.sequence)) + 1;
    return [...next, ...rowsOf(work(25), from, from)];
  };

  /** The view after a compaction with this summary, and after more work. */
  const nextRound = async (rows: readonly StoredMessage[], round: number, written: Written) => {
    const from = Math.max(...rows.map((row) => row.sequence)) + 1;
    const grown = round === 1 ? rows : [...rows, ...rowsOf(work(30), from, from)];
    const { summarise } = scriptedSummariser(summaryText(written));
    return afterRound(
      grown,
      compacted(await compact("threshold-rounds", roundOf(grown, round), summarise)),
      round,
    );
  };

  it("keeps paths and open items that the next summary forgets, and drops closed ones", async () => {
    const rows = await previous(rowsOf([user("Build the app."), ...writes("src/old.ts"), ...work(30)]));
    const { summarise } = scriptedSummariser(summaryText({ pending: "- [x] write the README" }));
    const done = compacted(await compact("threshold-rounds", roundOf(rows, 2), summarise));
    expect(done.summary).toContain("| src/old.ts | written |");
    expect(done.summary).toContain("- [ ] add the importer");
    expect(done.summary).toContain("- [x] write the README");
    expect(done.summary).not.toContain("set up tests");
  });

  it("keeps a decision that the next summary leaves out, with the new ones and only once", async () => {
    const early = "- Retries stay at 3, since the provider asks for it";
    const late = "- Money is stored in cents";
    const first = await nextRound(rowsOf([user("Build."), ...work(30)]), 1, { decisions: early });
    const second = await nextRound(first, 2, { decisions: late });
    const repeated = await nextRound(second, 3, {
      decisions: `${late}\n- Retries stay at 5`,
    });
    const decisions = (rows: readonly StoredMessage[]) =>
      parseSections(textOf(rows.find((row) => row.kind === "summary")!))["Key Technical Decisions"];
    expect(decisions(second)).toBe(`${early}\n${late}`);
    expect(decisions(repeated)).toBe(`${early}\n${late}\n- Retries stay at 5`);
  });

  it("drops the oldest decisions if they would fill the summary", async () => {
    const many = Array.from({ length: 200 }, (_, at) => `- Decision ${at} about this and that`).join("\n");
    const first = await nextRound(rowsOf([user("Build."), ...work(60)]), 1, { decisions: many });
    const second = await nextRound(first, 2, { decisions: "- A new one" });
    const summary = textOf(second.find((row) => row.kind === "summary")!);
    expect(summary).toContain("- Decision 199 about");
    expect(summary).not.toContain("- Decision 0 about");
    expect(estimateText(summary)).toBeLessThan(budget.summaryTokens);
  });

  it("asks for fewer words if there is less to summarise", async () => {
    const wordsFor = async (steps: number) => {
      const { summarise, requests } = scriptedSummariser(summaryText());
      await compact("threshold-rounds", roundOf(rowsOf([user("Build."), ...work(steps)])), summarise);
      return Number(/At most (\d+) words/.exec(requests[0]?.text ?? "")?.[1]);
    };
    expect(await wordsFor(12)).toBe(200);
    expect(await wordsFor(200)).toBe(500);
  });

  it("shortens the user's messages that no longer fit verbatim", async () => {
    const rows = rowsOf([user("Build the app."), user("Always use tabs."), ...work(30)]);
    const tight = { ...budget, userTokens: 0 };
    const first = scriptedSummariser(summaryText());
    const done = compacted(
      await compact("threshold-rounds", roundOf(rows, 1, { budget: tight }), first.summarise),
    );
    expect(done.summary).toContain("- Always use tabs.");
    const next = [...afterRound(rows, done, 1), ...rowsOf(work(25), 100, 100)];
    const second = scriptedSummariser(summaryText());
    expect(
      compacted(await compact("threshold-rounds", roundOf(next, 2, { budget: tight }), second.summarise))
        .summary,
    ).toContain("- Always use tabs.");
  });

  it("shows an item that left the todo list once as closed, and then no longer", async () => {
    const todo = (id: string, ...texts: string[]) => [
      calls("", {
        id,
        name: "todo",
        input: { items: texts.map((content) => ({ content, status: "pending" })) },
      }),
      result(id, "ok", "completed", "todo"),
    ];
    let rows = rowsOf([user("Build the app."), ...todo("t1", "parse decks", "draw icons"), ...work(30)]);
    const summaries: string[] = [];
    for (const round of [1, 2, 3]) {
      const { summarise } = scriptedSummariser(summaryText());
      const done = compacted(await compact("threshold-rounds", roundOf(rows, round), summarise));
      summaries.push(done.summary);
      const more = [...(round === 1 ? todo("t2", "parse decks") : []), ...work(25)];
      rows = [...afterRound(rows, done, round), ...rowsOf(more, 1_000 * round, 100)];
    }
    expect(summaries[0]).toContain("- [ ] draw icons");
    expect(summaries[1]).toContain("- [x] draw icons (no longer on the list)");
    expect(summaries[2]).not.toContain("draw icons");
    for (const summary of summaries) expect(summary).toContain("- [ ] parse decks");
  });

  it("takes open items from the todo tool, also without a model", async () => {
    const items = [
      { text: "parse decks", status: "completed" },
      { text: "schedule cards", status: "pending" },
    ];
    const todo = [
      calls("", { id: "t", name: "todo", input: { items } }),
      result("t", "ok", "completed", "todo"),
    ];
    const rows = rowsOf([user("Build the app."), ...todo, ...work(30)]);
    const done = compacted(await compact("deterministic", roundOf(rows), scriptedSummariser().summarise));
    expect(done.summary).toContain("- [x] parse decks");
    expect(done.summary).toContain("- [ ] schedule cards");
  });
});
