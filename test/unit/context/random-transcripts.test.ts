/** The pure half of test/activities/random-sessions.test.ts: many more sessions, no database. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { strategyNames } from "../../../activities/config/strategies.ts";
import { compact } from "../../../activities/compaction/compact.ts";
import { budgetFor } from "../../../activities/config/budget.ts";
import { coalesce } from "../../../activities/step/guidance.ts";
import type {
  AssistantPart,
  Message,
  StoredMessage,
  UserPart,
} from "../../../activities/contract/message.ts";
import { planPrune } from "../../../activities/transcript/prune-plan.ts";
import { findFault, buildView, PRUNED_TEXT } from "../../../activities/transcript/view.ts";
import { estimateMessage } from "../../../activities/contract/request-size.ts";
import { checkPairs } from "../../support/model-server/check-pairs.ts";
import { afterRound } from "../../support/compacting.ts";
import { result, rowsOf } from "../../support/rows.ts";
import { wireItems } from "../../support/wire-items.ts";

const budget = budgetFor(16_000, { triggerRatio: 0.8 });

const id = fc.constantFrom("a", "b", "c", "d", "e", "f");
const noise = fc.constantFrom("ok", "", "A line of a build that goes on.\n".repeat(40), "行".repeat(700));
const userPart: fc.Arbitrary<UserPart> = fc.oneof(
  fc
    .constantFrom("use pnpm", " ", "🦊", "A rule that is long. ".repeat(60))
    .map((text) => ({ type: "text" as const, text })),
  fc.constant({ type: "file" as const, mediaType: "image/png", data: "data:image/png;base64,AAAA" }),
);

const event = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("step" as const),
      text: fc.constantFrom("", "A word.", "A long answer. ".repeat(50)),
      thinks: fc.boolean(),
      calls: fc.array(
        fc.record({ id, text: noise, crashed: fc.integer({ min: 0, max: 9 }).map((dice) => dice === 0) }),
        {
          maxLength: 4,
        },
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("guidance" as const),
      queue: fc.array(fc.array(userPart, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("compaction" as const),
      strategy: fc.constantFrom(...strategyNames),
      trigger: fc.constantFrom("threshold" as const, "overflow" as const, "manual" as const),
      keepMessages: fc.constantFrom(2, 4, undefined),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: "prune" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "undo" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("reset" as const), back: fc.integer({ min: 1, max: 5 }) }),
  },
);
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;

/** A transcript in memory: the view, and what each compaction removed from it. */
interface Transcript {
  rows: StoredMessage[];
  rounds: { readonly round: number; readonly step: number; readonly gone: readonly StoredMessage[] }[];
  step: number;
  next: number;
  round: number;
  all: Set<number>;
}

function add(transcript: Transcript, messages: readonly Message[]): void {
  const rows = rowsOf([...messages], transcript.next, transcript.step);
  transcript.next += messages.length;
  transcript.rows = [...transcript.rows, ...rows];
  for (const row of rows) transcript.all.add(row.sequence);
}

function undo(transcript: Transcript): void {
  const last = transcript.rounds.pop();
  if (last === undefined) return;
  const summary = transcript.rows.find((row) => row.slot === `summary:${last.round}`);
  transcript.all.delete(summary?.sequence ?? 0);
  transcript.rows = [...transcript.rows.filter((row) => row !== summary), ...last.gone].toSorted(
    (a, b) => a.position - b.position,
  );
}

async function happen(transcript: Transcript, what: Event): Promise<void> {
  switch (what.kind) {
    case "step": {
      const content: AssistantPart[] = [
        ...(what.thinks
          ? [
              {
                type: "reasoning" as const,
                text: "hm",
                providerOptions: { openai: { reasoningEncryptedContent: "x" } },
              },
            ]
          : []),
        ...(what.text === "" ? [] : [{ type: "text" as const, text: what.text }]),
        ...what.calls.map((call) => ({
          type: "tool-call" as const,
          toolCallId: call.id,
          toolName: "bash",
          input: {},
        })),
      ];
      const results = what.calls.filter((call) => !call.crashed).map((call) => result(call.id, call.text));
      add(transcript, [{ role: "assistant", content }, ...results]);
      transcript.step += 1;
      return;
    }
    case "guidance": {
      const merged = coalesce(what.queue.map((parts, index) => ({ id: `m${index}`, parts, queuedAt: "" })));
      add(transcript, [{ role: "user", content: merged?.parts ?? [] }]);
      return;
    }
    case "compaction": {
      const { rows } = transcript;
      const done = await compact(
        what.strategy,
        {
          rows,
          budget,
          round: transcript.round + 1,
          trigger: what.trigger,
          prefixTokens: 1_000,
          summariserRoomTokens: 16_000,
          options: { keepMessages: what.keepMessages },
          deterministic: true,
        },
        () => Promise.reject(new Error("No model is asked.")),
      );
      if (done.kind !== "compacted") return;
      transcript.round += 1;
      const gone = rows.filter((row) => done.replaced.includes(row.sequence));
      transcript.rounds.push({ round: transcript.round, step: transcript.step, gone });
      const after = afterRound(rows, done, transcript.round).map((row) =>
        row.slot === `summary:${transcript.round}` ? { ...row, sequence: transcript.next } : row,
      );
      transcript.all.add(transcript.next);
      transcript.next += 1;
      transcript.rows = after;
      const before = 1_000 + rows.reduce((sum, row) => sum + row.tokens, 0);
      expect(done.after).toBeLessThanOrEqual(Math.max(done.before, before));
      return;
    }
    case "prune": {
      const { sequences } = planPrune(transcript.rows, { pruneProtectTokens: 300, pruneMinimumTokens: 100 });
      transcript.rows = transcript.rows.map((row) =>
        sequences.includes(row.sequence) ? { ...row, prunedStep: transcript.step } : row,
      );
      return;
    }
    case "undo":
      undo(transcript);
      return;
    case "reset": {
      const step = Math.max(0, transcript.step - what.back);
      while ((transcript.rounds.at(-1)?.step ?? 0) > step) undo(transcript);
      const gone = transcript.rows.filter(
        (row) => row.kind !== "summary" && row.kind !== "task" && row.step > step,
      );
      for (const row of gone) transcript.all.delete(row.sequence);
      transcript.rows = transcript.rows.filter((row) => !gone.includes(row));
      transcript.step = step;
      return;
    }
  }
}

function check({ rows, rounds, all }: Transcript): void {
  const stored = JSON.stringify(rows);
  const { messages, sizes, tokens } = buildView(rows);
  expect(JSON.stringify(rows)).toBe(stored);
  expect(findFault(messages)).toBeUndefined();
  expect(sizes).toHaveLength(messages.length);
  expect(tokens).toBeGreaterThan(0);
  for (const api of ["responses", "chat"] as const) checkPairs(api, wireItems(messages, api));
  // The task first, the person's newest message, and each result in view with its own text.
  expect(rows[0]?.kind).toBe("task");
  expect(messages[0]).toMatchObject({ role: "user", content: [{ text: "Build it." }] });
  const newest = [...rounds.flatMap((round) => round.gone), ...rows]
    .filter((row) => row.kind === "guidance")
    .toSorted((left, right) => left.sequence - right.sequence)
    .at(-1);
  // A message larger than the limit for all user messages is in the summary.
  if (newest !== undefined && newest.tokens <= budget.userTokens)
    expect(rows.map((row) => row.sequence)).toContain(newest.sequence);
  const count = (list: readonly string[]) => Object.groupBy(list, (text) => text);
  const shown = count(
    messages.flatMap((message) => (message.role === "tool" ? [message.content[0].text] : [])),
  );
  const kept = count(
    rows.flatMap((row) =>
      row.role !== "tool" ? [] : [row.prunedStep === undefined ? row.content[0].text : PRUNED_TEXT],
    ),
  );
  for (const [text, times] of Object.entries(kept))
    if (text !== PRUNED_TEXT) expect(shown[text]?.length ?? 0).toBeGreaterThanOrEqual(times?.length ?? 0);
  // Each message is in the view or in exactly one compaction.
  const places = [...rows, ...rounds.flatMap((round) => round.gone)].map((row) => row.sequence);
  expect(new Set(places).size).toBe(places.length);
  expect(new Set(places)).toEqual(all);
  expect(rows.filter((row) => row.kind === "summary").length).toBeLessThanOrEqual(1);
}

it(
  "a transcript under random events is well-formed on both wires, and loses no message",
  { tags: ["case-3", "case-6", "case-17", "invariant-4"], timeout: 300_000 },
  async () => {
    let rounds = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 5, maxLength: 40 }), async (events) => {
        const task: Message = { role: "user", content: [{ type: "text", text: "Build it." }] };
        const transcript: Transcript = {
          rows: rowsOf([task]).map((row) => ({ ...row, step: 0, tokens: estimateMessage(task) })),
          rounds: [],
          step: 0,
          next: 2,
          round: 0,
          all: new Set([1]),
        };
        for (const what of events) {
          await happen(transcript, what);
          check(transcript);
        }
        rounds += transcript.round;
      }),
      { numRuns: 150, seed: 20261121 },
    );
    expect(rounds).toBeGreaterThan(50);
  },
);
