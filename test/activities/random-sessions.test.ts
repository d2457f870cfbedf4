/** Whatever happens to a session, what is sent of it is well-formed, and what is stored of it is left alone. */
import fc from "fast-check";
import { asc, eq, isNull, and } from "drizzle-orm";
import { expect, it } from "vitest";
import { PRUNED_TEXT } from "../../activities/transcript/view.ts";
import { buildMessages } from "../../activities/context/request.ts";
import { compactionEvents, messages } from "../../activities/store/schema/index.ts";
import { loadView } from "../../activities/store/load-view.ts";
import { directConfig, createDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { DOT_PNG } from "../support/images.ts";
import { happen, happening, PROBE, scriptOf, type Life } from "../support/random-session.ts";
import { wordsOf } from "../support/scripted-summaries.ts";
import { useDatabase } from "../support/test-database.ts";
import { askedAs } from "../support/run-config.ts";

const database = useDatabase();

const TASK = "Build the harbour's importer.";
const WINDOW = 16_000;
/** 15 % of the window, which is what user messages have besides a summary, at 3.5 characters a token. */
const KEPT_CHARS = 0.15 * WINDOW * 3.5;

it(
  "a session to which anything may happen has at every moment a request that both wires take",
  { tags: ["case-6", "case-17", "invariant-4", "invariant-5"], timeout: 600_000 },
  async () => {
    let requests = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { minLength: 4, maxLength: 16 }), async (happenings) => {
        const life = await begin();
        const trail: string[] = [];
        try {
          let stored: Row[] = await rowsOf(life.agent);
          for (const what of happenings) {
            trail.push(
              JSON.stringify(what, (_key, value: unknown) =>
                typeof value === "string" ? value.slice(0, 30) : value,
              ),
            );
            await happen(life, what);
            stored = await check(life, stored);
            requests += 2;
          }
        } catch (error) {
          throw new Error(`After:\n${trail.join("\n")}`, { cause: error });
        } finally {
          await life.agent.close();
        }
      }),
      {
        numRuns: 15,
        seed: 20261121,
        // Each run is a session in Postgres: what happened is reported instead of shrunk.
        endOnFailure: true,
      },
    );
    console.log(`${requests} requests of random sessions were taken`);
  },
);

async function begin(): Promise<Life> {
  let life: Life | undefined;
  const agent = await createDirectAgent(
    database,
    scriptOf(() => life ?? { answer: [], summary: "" }),
    {
      task: TASK,
      config: {
        model: "openai/o3",
        contextWindow: WINDOW,
        context: { ...directConfig().context, options: { keepMessages: 3 } },
      },
      // The agent counts for itself; a view that does not fit is compacted, not sent.
      served: { o3: { window: 1_000_000, input: ["text", "image"], reasoning: true } },
    },
  );
  life = {
    agent,
    step: 0,
    open: [],
    round: 0,
    runs: 1,
    requests: 0,
    answer: [],
    summary: "",
    lastSaid: [],
  };
  await agent.sandbox.files.write(
    "big.txt",
    Buffer.from("A line of a big file that someone reads.\n".repeat(300)),
  );
  await agent.sandbox.files.write("dot.png", DOT_PNG);
  await agent.perform("openSession", { chain: agent.runId });
  return life;
}

/** What was said last: whole, or its beginning if its step brought more than such a window keeps. */
function newestOf({ lastSaid }: Life): string {
  const last = lastSaid.at(-1);
  const together = lastSaid.filter((said) => said.step === last?.step);
  const chars = together.reduce((sum, { text }) => sum + text.length, 0);
  return (last?.text ?? "").slice(0, chars > KEPT_CHARS ? 200 : undefined);
}

type Row = typeof messages.$inferSelect;

function rowsOf(agent: DirectAgent): Promise<Row[]> {
  return database.store.db
    .select()
    .from(messages)
    .where(eq(messages.sessionId, agent.id))
    .orderBy(asc(messages.id));
}

/** What no mark may change of a row. */
function unchanging({ id, sequence, position, epoch, step, slot, role, kind, content, tokenCount }: Row) {
  return { id, sequence, position, epoch, step, slot, role, kind, content, tokenCount };
}

async function check(life: Life, before: readonly Row[]): Promise<Row[]> {
  const { agent } = life;
  const { db } = database.store;
  const rows = await rowsOf(agent);
  expect(rows.slice(0, before.length).map(unchanging)).toEqual(before.map(unchanging));

  const view = await loadView(db, agent.id);
  const built = await buildMessages(db, view, ["text", "image"]);
  for (const api of ["responses", "chat"] as const) {
    await agent.deps.model.ask(
      {
        target: {
          ...askedAs("openai/o3"),
          api,
          contextWindow: 200_000,
          maxOutput: 100,
          input: ["text", "image"],
        },
        system: PROBE,
        messages: built.messages,
        tools: [],
        maxOutputTokens: 100,
        cacheKey: "probe",
        deadlines: { connectMs: 5_000, firstTokenMs: 5_000, silenceMs: 5_000, answerMs: 60_000 },
      },
      () => undefined,
      new AbortController().signal,
    );
    const sent = agent.model.requests.at(-1);
    const words = sent === undefined ? "" : wordsOf(sent);
    expect(words).toContain(TASK);
    expect(words).toContain(newestOf(life));
    // Pairs of call and result as they were sent; an id that a provider used twice is sent under another.
    const names = new Map(
      (sent?.items ?? []).flatMap((item) =>
        item.type === "call" ? [[item.callId, item.name] as const] : [],
      ),
    );
    const pairs = (sent?.items ?? []).flatMap((item) =>
      item.type === "result" ? [`${names.get(item.callId)}: ${JSON.stringify(item.parts)}`] : [],
    );
    for (const row of view) {
      if (row.role !== "tool") continue;
      const [{ toolName, text }] = row.content;
      const expected = JSON.stringify(row.prunedStep === undefined ? text.slice(0, 60) : PRUNED_TEXT);
      const shown = expected.slice(1, -1);
      expect(pairs.some((pair) => pair.startsWith(`${toolName}: `) && pair.includes(shown))).toBe(true);
    }
  }
  expect(await rowsOf(agent)).toEqual(rows);
  await checkRounds(agent, rows, new Set(view.map((row) => row.sequence)));
  return rows;
}

/** Each live message is in the view or in exactly one live round; each live round has its summary, once. */
async function checkRounds(
  agent: DirectAgent,
  rows: readonly Row[],
  inView: ReadonlySet<number>,
): Promise<void> {
  const rounds = await database.store.db
    .select()
    .from(compactionEvents)
    .where(and(eq(compactionEvents.sessionId, agent.id), isNull(compactionEvents.supersededEpoch)));
  const live = rows.filter((row) => row.supersededEpoch === null && row.role !== "system");
  for (const row of live) {
    expect(inView.has(row.sequence)).toBe(!row.isCompacted);
    expect(row.isCompacted).toBe(row.compactedRound !== null);
    if (row.compactedRound === null) continue;
    const owner = rounds.filter((round) => round.round === row.compactedRound && round.status !== "failed");
    expect(owner).toHaveLength(1);
    // A round that was undone holds nothing but its own summary.
    if (owner[0]?.status === "undone") expect(row.slot).toBe(`summary:${row.compactedRound}`);
  }
  for (const round of rounds.filter((row) => row.status === "compacted"))
    expect(live.filter((row) => row.slot === `summary:${round.round}`)).toHaveLength(1);
  const summaries = live.filter((row) => row.kind === "summary" && !row.isCompacted);
  expect(summaries.length).toBeLessThanOrEqual(1);
}
