import { describe, expect, it } from "vitest";
import { compact } from "../../../activities/compaction/compact.ts";
import type { CompactionInput } from "../../../activities/compaction/compaction.ts";
import { budgetFor } from "../../../activities/config/budget.ts";
import type { Message, StoredMessage } from "../../../activities/contract/message.ts";
import { messageText } from "../../../activities/compaction/session-facts.ts";
import { parseSections, SECTIONS } from "../../../activities/compaction/summary-document.ts";
import { estimateText } from "../../../activities/text/tokens.ts";
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

/** A compaction by threshold-rounds, to which the model answers with this summary. */
async function round(
  rows: readonly StoredMessage[],
  number = 1,
  written: Written = {},
  extra: Partial<CompactionInput> = {},
) {
  const { summarise, requests } = scriptedSummariser(summaryText(written));
  const done = compacted(await compact("threshold-rounds", roundOf(rows, number, extra), summarise));
  const view = afterRound(rows, done, number);
  const summary = view.find((row) => row.kind === "summary");
  return {
    ...done,
    requests,
    prompt: requests[0]?.text ?? "",
    view,
    shown: summary ? messageText(summary) : "",
  };
}

/** The view, grown by these messages. */
function grown(rows: readonly StoredMessage[], ...messages: readonly Message[]): StoredMessage[] {
  const from = Math.max(...rows.map((row) => row.sequence)) + 1;
  return [...rows, ...rowsOf([...messages], from, from)];
}

const built = (...messages: readonly Message[]) => rowsOf([user("Build the app."), ...messages]);
const todo = (id: string, items: readonly object[]) => [
  calls("", { id, name: "todo", input: { items } }),
  result(id, "ok", "completed", "todo"),
];

describe("threshold-rounds", () => {
  it("replaces old messages by a summary with every section, and keeps the task and ten messages", async () => {
    const done = await round(built(...work(30)), 1, { state: "Half done." });
    expect(done.summary).toMatch(/^# Session Summary \(Compaction Round 1\)/);
    for (const section of SECTIONS) expect(done.summary).toContain(`## ${section}`);
    expect(done.summary).toContain("Half done.");
    expect(done.replaced).toEqual(Array.from({ length: 50 }, (_, index) => index + 2));
    expect(done.position).toBe(51.5);
    expect(done.after).toBeLessThan(done.before * 0.5);
    expect(done.requests).toHaveLength(1);
    const { messages, repairs } = buildView(done.view);
    expect(repairs).toEqual([]);
    expect(messages.map(({ role }) => role).slice(0, 3)).toEqual(["user", "assistant", "assistant"]);
  });

  it(
    "carries facts over three compactions, and sends only new messages each time",
    { tags: ["case-5"] },
    async () => {
      let rows = built();
      const histories: string[] = [];
      const prompts: string[] = [];
      for (const number of [1, 2, 3]) {
        const news = [
          ...writes(`src/part-${number}.ts`),
          ...work(1, `FACT-${number} ${filler}`),
          ...work(24),
        ];
        const facts = Array.from({ length: number }, (_, index) => `- FACT-${index + 1}`).join("\n");
        const { view, prompt } = await round(grown(rows, ...news), number, { decisions: facts });
        rows = view;
        prompts.push(prompt);
        histories.push(prompt.slice(prompt.indexOf("<history>")));
      }
      const [summary, ...more] = rows.filter((row) => row.kind === "summary");
      expect(more).toEqual([]);
      for (const number of [1, 2, 3]) {
        expect(messageText(summary!)).toContain(`FACT-${number}`);
        expect(messageText(summary!)).toContain(`| src/part-${number}.ts | written |`);
      }
      expect(prompts[1]).toContain("(Compaction Round 1)");
      expect(prompts[2]).toContain("(Compaction Round 2)");
      expect(histories[1]).toContain("FACT-2");
      expect(histories[1]).not.toContain("FACT-1");
      expect(histories[2]).not.toContain("FACT-2 ");
    },
  );

  it("leaves each message in the view or in exactly one replaced range", { tags: ["case-6"] }, async () => {
    let rows = built(...work(30));
    const replaced: number[] = [];
    const all = new Set(rows.map((row) => row.sequence));
    for (const number of [1, 2, 3]) {
      const done = await round(rows, number);
      replaced.push(...done.replaced);
      rows = grown(done.view, ...work(25));
      for (const row of rows) all.add(row.sequence);
    }
    const places = [...replaced, ...rows.map((row) => row.sequence)];
    expect(new Set(places).size).toBe(places.length);
    expect(new Set(places)).toEqual(all);
  });

  it(
    "puts the person's focus into the prompt, and reports where there is nothing to do",
    { tags: ["case-29"] },
    async () => {
      const focused = await round(
        built(...work(30)),
        1,
        {},
        { trigger: "manual", focus: "the SM-2 formula" },
      );
      expect(focused.prompt).toContain("the SM-2 formula");
      const none = scriptedSummariser();
      expect(await compact("threshold-rounds", roundOf(built()), none.summarise)).toMatchObject({
        kind: "nothing",
      });
      expect(none.requests).toHaveLength(0);
    },
  );

  it(
    "keeps less after an overflow, and only the live turn after the second",
    { tags: ["case-11"] },
    async () => {
      const rows = built(...work(30));
      const left = async (extra: Partial<CompactionInput>) =>
        rows.length - (await round(rows, 1, {}, extra)).replaced.length;
      const narrow = { ...budget, tailTokens: 2_400 };
      expect(await left({ budget: narrow })).toBe(11);
      expect(await left({ budget: narrow, trigger: "overflow" })).toBeLessThan(11);
      expect(await left({ trigger: "overflow", deterministic: true })).toBe(3);
    },
  );

  it("has nothing to replace if one message is larger than the window", { tags: ["case-10"] }, async () => {
    const small = roundOf(rowsOf([user("word ".repeat(5_000))]), 1, {
      budget: budgetFor(4_000, { triggerRatio: 0.8 }),
    });
    const { kind } = await compact("threshold-rounds", small, scriptedSummariser().summarise);
    expect(kind).toBe("nothing");
  });
});

describe("facts that must not vanish", () => {
  const early = "- Retries stay at 3, since the provider asks for it";
  const late = "- Money is stored in cents";

  it("keeps paths and open items that the next summary forgets, and drops closed ones", async () => {
    const pending = "- [ ] add the importer\n- [ ] write the README\n- [x] set up tests";
    const first = await round(built(...writes("src/old.ts"), ...work(30)), 1, { pending });
    const { summary } = await round(grown(first.view, ...work(25)), 2, { pending: "- [x] write the README" });
    expect(summary).toContain("| src/old.ts | written |");
    expect(summary).toContain("- [ ] add the importer");
    expect(summary).toContain("- [x] write the README");
    expect(summary).not.toContain("set up tests");
  });

  it("keeps a decision that the next summary leaves out, with the new ones and only once", async () => {
    const decisionsIn = (text: string) => parseSections(text)["Key Technical Decisions"];
    const first = await round(built(...work(30)), 1, { decisions: early });
    const second = await round(grown(first.view, ...work(30)), 2, { decisions: late });
    const third = { decisions: `${late}\n- Retries stay at 5` };
    const repeated = await round(grown(second.view, ...work(30)), 3, third);
    expect(decisionsIn(second.shown)).toBe(`${early}\n${late}`);
    expect(decisionsIn(repeated.shown)).toBe(`${early}\n${late}\n- Retries stay at 5`);
  });

  it("drops the oldest decisions if they would fill the summary", async () => {
    const many = Array.from({ length: 200 }, (_, at) => `- Decision ${at} about this and that`).join("\n");
    const first = await round(built(...work(60)), 1, { decisions: many });
    const { shown } = await round(grown(first.view, ...work(30)), 2, { decisions: "- A new one" });
    expect(shown).toContain("- Decision 199 about");
    expect(shown).not.toContain("- Decision 0 about");
    expect(estimateText(shown)).toBeLessThan(budget.summaryTokens);
  });

  it("asks for fewer words if there is less to summarise", async () => {
    const wordsFor = async (steps: number) =>
      Number(/at most (\d+) words/.exec((await round(built(...work(steps)))).prompt)?.[1]);
    expect(await wordsFor(12)).toBe(200);
    expect(await wordsFor(200)).toBe(500);
  });

  it("shortens the user's messages that no longer fit verbatim", async () => {
    const tight = { budget: { ...budget, userTokens: 0 } };
    const first = await round(built(user("Always use tabs."), ...work(30)), 1, {}, tight);
    expect(first.summary).toContain("- Always use tabs.");
    const second = await round(grown(first.view, ...work(25)), 2, {}, tight);
    expect(second.summary).toContain("- Always use tabs.");
  });

  it("shows an item that left the todo list once as closed, and then no longer", async () => {
    const listed = (id: string, ...texts: string[]) =>
      todo(
        id,
        texts.map((content) => ({ content, status: "pending" })),
      );
    let rows = built(...listed("t1", "parse decks", "draw icons"), ...work(30));
    const summaries: string[] = [];
    for (const number of [1, 2, 3]) {
      const { summary, view } = await round(rows, number);
      summaries.push(summary);
      rows = grown(view, ...(number === 1 ? listed("t2", "parse decks") : []), ...work(25));
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
    const rows = roundOf(built(...todo("t", items), ...work(30)));
    const done = compacted(await compact("deterministic", rows, scriptedSummariser().summarise));
    expect(done.summary).toContain("- [x] parse decks");
    expect(done.summary).toContain("- [ ] schedule cards");
  });
});
