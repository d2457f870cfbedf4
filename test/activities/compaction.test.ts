import { CancelledFailure } from "@temporalio/common";
import { and, eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { buildView, PRUNED_TEXT } from "../../activities/transcript/view.ts";
import { ModelError } from "../../activities/model/model.ts";
import { lastRound, storeRound } from "../../activities/store/compactions.ts";
import { sessions, storedMessages } from "../../activities/store/schema/index.ts";
import { summaryText, work } from "../support/compacting.ts";
import { answer, compactingSession, SECRET, type Scripted } from "../support/compacting-session.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

/** A session of thirty steps, to which the summariser answers so. */
const begin = (...answers: Scripted[]) => compactingSession(database, work(30), ...answers);

describe("summarize", () => {
  it("stores summary, marks and event as one, and deletes nothing", async () => {
    const session = await begin(summaryText({ state: `Half done with ${SECRET}.` }));
    const before = await session.all();
    const facts = await session.summarize();
    expect(facts).toMatchObject({ kind: "compacted", round: 1, context: { estimated: true } });
    const view = await session.view();
    expect(view.map((row) => row.kind).slice(0, 2)).toEqual(["task", "summary"]);
    expect(view).toHaveLength(12);
    expect(buildView(view).repairs).toEqual([]);
    const after = await session.all();
    expect(after).toHaveLength(before.length + 1);
    expect(
      after.filter((row) => row.isCompacted).every((row) => row.compactedRound === 1 && row.compactedAt),
    ).toBe(true);
    const [round] = await session.rounds();
    expect(round).toMatchObject({
      round: 1,
      status: "compacted",
      strategy: "threshold-rounds",
      trigger: "threshold",
      fromSequence: 3,
      toSequence: 52,
    });
    expect(round?.summaryContent).toContain("Session Summary (Compaction Round 1)");
    expect(round?.summaryContent).toContain("Half done");
    expect(round?.summaryContent).not.toContain(SECRET);
    expect(round?.tokensAfter).toBeLessThan(round?.tokensBefore ?? 0);
    expect(await session.bills()).toMatchObject([{ purpose: "summary", status: "kept", inputTokens: 900 }]);
    expect(await session.events()).toEqual(["context:compressing", "context:compressed"]);
    if (facts.kind === "compacted") expect(facts.context.used).toBeLessThan(facts.before);
  });

  it("asks with the focus that a person gave, clean and masked", async () => {
    const session = await begin(summaryText());
    const extra = { trigger: "manual" as const, focus: `the key ${SECRET}\0` };
    expect(await session.summarize(1, { extra })).toMatchObject({ kind: "compacted" });
    const asked = JSON.stringify(session.requests);
    expect(asked).toContain("the key [masked]␀");
    expect(asked).not.toContain(SECRET);
  });

  it(
    "chains three rounds: each replaces the summary before it, round numbers grow",
    { tags: ["case-5"] },
    async () => {
      const session = await begin(summaryText(), summaryText(), summaryText());
      for (const round of [1, 2, 3]) {
        expect(await session.summarize(round)).toMatchObject({ kind: "compacted", round });
        await session.add(work(25), 40 * round);
      }
      expect((await session.rounds()).map((round) => round.round)).toEqual([1, 2, 3]);
      const view = await session.view();
      expect(view.filter((row) => row.kind === "summary").map((row) => row.slot)).toEqual(["summary:3"]);
      expect(await lastRound(database.store.db, session.id)).toBe(3);
      expect(session.requests[2]?.messages[0]?.content[0]).toMatchObject({
        text: expect.stringContaining("(Compaction Round 2)"),
      });
    },
  );

  it("costs nothing again if an earlier attempt had stored the round", { tags: ["case-24"] }, async () => {
    const session = await begin(summaryText());
    const first = await session.summarize();
    const again = await session.summarize(1, { attempt: 2 });
    expect(again).toEqual(first);
    expect(session.requests).toHaveLength(1);
    expect(await session.rounds()).toHaveLength(1);
  });

  it("writes nothing if a row that it would replace has left the view meanwhile", async () => {
    const session = await begin(async () => {
      await database.store.db
        .update(storedMessages)
        .set({ supersededEpoch: 2 })
        .where(and(eq(storedMessages.sessionId, session.id), eq(storedMessages.sequence, 5)));
      return answer(summaryText());
    });
    await expect(session.summarize()).rejects.toThrow(
      /1 of 50 messages are not in view any more. Nothing was changed/,
    );
    expect(await session.rounds()).toEqual([]);
    expect((await session.all()).some((row) => row.isCompacted || row.kind === "summary")).toBe(false);
  });

  it("writes nothing for a run that was superseded while it waited", async () => {
    const session = await begin(async () => {
      await database.store.db.update(sessions).set({ runId: "run-2" }).where(eq(sessions.id, session.id));
      return answer(summaryText());
    });
    await expect(session.summarize()).rejects.toThrow(/newer run has claimed/);
    expect((await session.all()).some((row) => row.isCompacted)).toBe(false);
  });

  it(
    "ends as cancelled, without another summary and without a row, when it is cancelled",
    { tags: ["case-14"] },
    async () => {
      const session = await begin(
        (_request, signal) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener("abort", () => reject(signal.reason as Error)),
          ),
      );
      const env = session.environment(1);
      const running = session.summarize(1, { environment: env });
      const ended = expect(running).rejects.toBeInstanceOf(CancelledFailure);
      await expect.poll(() => session.requests.length).toBe(1);
      env.cancel();
      await ended;
      expect(await session.rounds()).toEqual([]);
      expect(await session.bills()).toMatchObject([{ purpose: "summary", status: "wasted" }]);
      expect((await session.all()).some((row) => row.isCompacted)).toBe(false);
    },
  );

  it("says that there is nothing to do, and leaves no row and no event", { tags: ["case-29"] }, async () => {
    const session = await compactingSession(database, work(1));
    expect(await session.summarize(1, { extra: { trigger: "manual" } })).toMatchObject({ kind: "nothing" });
    expect(await session.rounds()).toEqual([]);
    expect(await session.events()).toEqual([]);
  });

  it(
    "asks again with less when the provider says that the request is too long",
    { tags: ["case-9"] },
    async () => {
      const session = await begin(new ModelError("too long", { class: "overflow" }), summaryText());
      expect(await session.summarize()).toMatchObject({ kind: "compacted" });
      expect(await session.bills()).toMatchObject([{ status: "wasted" }, { status: "kept" }]);
      expect((await session.rounds())[0]?.attempts).toMatchObject([
        { rung: "full", outcome: "overflow" },
        { rung: "results-cut", outcome: "accepted" },
      ]);
    },
  );

  it(
    "waits for a provider that fails for a moment, and uses no model if it keeps failing",
    { tags: ["R42"] },
    async () => {
      const down = new ModelError("503", { class: "unavailable" });
      const session = await begin(down, down);
      await expect(session.summarize(1, { attempt: 1 })).rejects.toThrow("503");
      expect(await session.rounds()).toEqual([]);
      expect(await session.summarize(1, { attempt: 3 })).toMatchObject({ kind: "compacted" });
      expect((await session.rounds())[0]?.attempts).toMatchObject([
        { rung: "deterministic", outcome: "accepted" },
      ]);
    },
  );

  it("goes without a model at once when a summary took all of an attempt's time", async () => {
    const late = new ModelError("It was not complete after 585 s.", { class: "too-long" });
    const session = await begin(late);
    expect(await session.summarize(1, { attempt: 1 })).toMatchObject({ kind: "compacted" });
    expect((await session.rounds())[0]?.attempts).toMatchObject([
      { rung: "deterministic", outcome: "accepted" },
    ]);
    expect(session.requests).toHaveLength(1);
  });

  it("asks no model for three rounds after a summary grew, unless a person asks for one", async () => {
    const longer = summaryText({ state: "Nothing gets shorter by being repeated. ".repeat(2_000) });
    const session = await begin(longer, summaryText(), summaryText(), summaryText());
    const rungs = async () =>
      (await session.rounds()).at(-1)?.attempts as { rung: string; outcome: string }[];
    const round = async (number: number, trigger: "threshold" | "manual" | "overflow" = "threshold") => {
      expect(await session.summarize(number, { extra: { trigger } })).toMatchObject({ kind: "compacted" });
      await session.add(work(25), 40 * number);
      return (await rungs()).map(({ rung, outcome }) => `${rung}: ${outcome}`);
    };
    expect(await round(1)).toEqual(["full: inflated", "deterministic: accepted"]);
    expect(await round(2)).toEqual(["deterministic: accepted"]);
    expect(await round(3, "manual")).toEqual(["full: accepted"]);
    expect(await round(4)).toEqual(["deterministic: accepted"]);
    expect(session.requests).toHaveLength(2);
    expect(await round(5)).toEqual(["full: accepted"]);
    expect(session.requests).toHaveLength(3);
  });

  it("asks a model nevertheless if the provider refused a request after such a round", async () => {
    const longer = summaryText({ state: "Nothing gets shorter by being repeated. ".repeat(2_000) });
    const session = await begin(longer, summaryText());
    await session.summarize(1);
    await session.add(work(25), 40);
    expect(await session.summarize(2, { extra: { trigger: "overflow" } })).toMatchObject({
      kind: "compacted",
    });
    expect(session.requests).toHaveLength(2);
  });

  it("records a round that failed and leaves the transcript as it was", { tags: ["case-7"] }, async () => {
    const session = await compactingSession(database, work(6, "ok"));
    const before = await session.all();
    expect(await session.summarize(1, { extra: { deterministic: true } })).toMatchObject({ kind: "failed" });
    expect(await session.all()).toEqual(before);
    expect(await session.rounds()).toMatchObject([{ status: "failed", summaryContent: null }]);
    expect(await lastRound(database.store.db, session.id)).toBe(0);
    expect(session.requests).toHaveLength(0);
  });
});

it("storeRound is one transaction: what fails after the event undoes the event", async () => {
  const session = await begin();
  const round = {
    sessionId: session.id,
    epoch: 1,
    step: 40,
    round: 1,
    trigger: "threshold",
    strategy: "threshold-rounds",
    attempts: [],
    tokensBefore: 10,
    tokensAfter: 5,
    durationMs: 1.5,
    summary: "s",
    summaryTokens: 1,
    position: 3.5,
    replaced: [2, 3],
    hidden: [],
  };
  const data = {
    round: 1,
    strategy: "threshold-rounds",
    trigger: "threshold",
    tokensBefore: 10,
    tokensAfter: 5,
    messages: 2,
    status: "compacted",
    reason: null,
  };
  const event = { type: "context:compressed", step: 40, data } as const;
  await expect(
    storeRound(database.store, "run-1", { ...round, replaced: [2, 3, 9_999] }, [event]),
  ).rejects.toThrow(/1 of 3 messages/);
  expect(await session.rounds()).toEqual([]);
  expect(await session.events()).toEqual([]);
  expect((await session.all()).some((row) => row.isCompacted || row.kind === "summary")).toBe(false);
  expect(await storeRound(database.store, "run-0", round, [event])).toBe("superseded");
  expect(await storeRound(database.store, "run-1", round, [event])).toBe("stored");
  expect(await storeRound(database.store, "run-1", round, [event])).toBe("there");
  expect(await session.events()).toEqual(["context:compressed"]);
  expect((await session.all()).filter((row) => row.kind === "summary")).toMatchObject([
    { position: 3.5, role: "assistant" },
  ]);
});

it("prune marks old results, keeps their text, and does it once", { tags: ["case-15"] }, async () => {
  const session = await compactingSession(
    database,
    work(20, "a line of output that no one needs any more\n".repeat(120)),
  );
  const facts = await session.prune();
  expect(facts.pruned).toBeGreaterThan(0);
  expect(facts.savedTokens).toBeGreaterThan(4_800);
  const marked = (await session.all()).filter((row) => row.prunedStep === session.reached());
  expect(marked).toHaveLength(facts.pruned);
  // Each says when it was hidden, and nothing else does.
  const since = Date.now() - 60_000;
  for (const row of await session.all()) {
    if (row.prunedStep === null) expect(row.prunedAt).toBeNull();
    else expect(row.prunedAt?.getTime()).toBeGreaterThan(since);
  }
  expect(JSON.stringify(marked[0]?.content)).toContain("no one needs any more");
  const shown = buildView(await session.view()).messages.filter(
    (message) => message.role === "tool" && message.content[0].text.startsWith(PRUNED_TEXT),
  );
  expect(shown).toHaveLength(facts.pruned);
  expect(await session.events()).toEqual(["context:pruned"]);
  expect(await session.prune()).toMatchObject({ pruned: 0, savedTokens: 0 });
  expect(await session.events()).toHaveLength(1);
});
