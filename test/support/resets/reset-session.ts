/**
 * Resets a session of one shape again and again: to any event that Temporal allows, of any of its runs, also twice and during what is
 * in flight. Whatever is checked follows from the answers: each names its step and its line.
 */
import { randomUUID } from "node:crypto";
import type { AgentHarness, RunningSession } from "../agent-harness.ts";
import { checkFamily } from "../delegating.ts";
import { retry } from "../client-services.ts";
import { eventually, within } from "../eventually.ts";
import type { Random } from "../random.ts";
import type { HistoryEvent } from "../reset-run.ts";
import { scriptedModel } from "../scripted-model.ts";
import { isSummaryRequest } from "../scripted-summaries.ts";
import { stepOf } from "../crash/scripts.ts";
import { transcriptOf } from "../stored.ts";
import { openQuestions } from "../../../activities/store/questions.ts";
import { runIdsOf } from "../../../activities/store/runs.ts";
import { answeredIn, compareViews } from "./reset-evidence.ts";
import { playShape, type Shape } from "./shapes.ts";

/** Which line answered each step of a run's conversation. */
type Lines = ReadonlyMap<number, number>;

export interface ResetCounts {
  /** By shape and kind of event. */
  readonly done: Map<string, number>;
  /** By reason. */
  readonly refused: Map<string, number>;
  /** Replaced by a later reset before they ended. */
  overtaken: number;
  readonly violations: string[];
}

export const newCounts = (): ResetCounts => ({
  done: new Map(),
  refused: new Map(),
  overtaken: 0,
  violations: [],
});

const count = (of: Map<string, number>, key: string) => void of.set(key, (of.get(key) ?? 0) + 1);

const KIND = /^(workflow|activity|timer|child|marker|upsert)/;
/** The name of an event's kind, as its attributes say it. */
const kindOf = (event: HistoryEvent): string => {
  const [name = "unknown"] = Object.entries(event).flatMap(([key, value]) =>
    KIND.test(key) && key.endsWith("EventAttributes") && value ? [key.replace("EventAttributes", "")] : [],
  );
  return name;
};

interface Playing {
  readonly agent: AgentHarness;
  readonly session: RunningSession;
  readonly shape: Shape;
  readonly random: Random;
  readonly counts: ResetCounts;
  line: number;
  readonly lines: Map<string, Lines>;
  /** The request by which each conversation asked for a step. */
  readonly views: Map<string, string>;
}

/** @returns once the session was reset `resets` times, and was checked */
export async function resetSession(
  agent: AgentHarness,
  shape: Shape,
  {
    random,
    counts,
    resets,
  }: { readonly random: Random; readonly counts: ResetCounts; readonly resets: number },
): Promise<void> {
  const playing = await begin(agent, shape, random, counts);
  for (let number = 0; number < resets; number += 1) await resetOnce(playing);
  try {
    await checkFamily(agent, playing.session);
  } catch (error) {
    counts.violations.push(`${shape.name} ${playing.session.id}: ${(error as Error).message}`);
  }
}

async function begin(
  agent: AgentHarness,
  shape: Shape,
  random: Random,
  counts: ResetCounts,
): Promise<Playing> {
  let playing: Playing | undefined;
  let handle: RunningSession["handle"] | undefined;
  const send = async (name: string) => {
    await handle?.signal(name, name === "compact" ? {} : randomUUID());
  };
  const first = async (step: number) => {
    const { signal } = shape;
    if (signal === undefined || playing !== undefined) return;
    if (step === signal.step) await send("compact");
    if (step === signal.step + 2 && signal.name === "compactAndUndo") await send("undoCompaction");
  };
  const lineOf = () => playing?.line ?? 1;
  const script = scriptedModel().forever(playShape(shape, lineOf, first));
  const session = await agent.start(script, shape.config === undefined ? {} : { config: shape.config });
  handle = session.handle;
  const begun: Playing = {
    agent,
    session,
    shape,
    random,
    counts,
    line: 1,
    lines: new Map(),
    views: new Map(),
  };
  await untilOver(begun, undefined);
  if (shape.says !== undefined) {
    await note(begun);
    await session.resume(shape.says, "go-on");
    await untilOver(begun, undefined);
  }
  await note(begun);
  playing = begun;
  if (shape.retryFrom !== undefined) {
    begun.line += 1;
    await untilOver(begun, (await retry(agent, session.id, shape.retryFrom)).runId);
    await note(begun);
  }
  return begun;
}

/** A run that takes so long hangs, even on a machine with ten times more work than it can do. */
const HANGS_MS = 240_000;

/** Answers what is asked until the run, and those that continue it as new, have ended. @returns its outcome */
async function untilOver({ agent, session }: Playing, runId: string | undefined): Promise<string> {
  const handle = agent.client.workflow.getHandle(session.id, runId);
  let isOver = false;
  const answering = (async () => {
    while (!isOver) {
      for (const { id, kind } of await openQuestions(agent.database.store.db, session.id)) {
        const answer = kind === "approval" ? { action: "allow" } : { option: 1 };
        await agent.client.workflow
          .getHandle(session.id)
          .executeUpdate("answerQuestion", { args: [{ question: id, ...answer }] })
          // It may be over, or another run may have the session.
          .catch(() => undefined);
      }
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  })();
  try {
    const result = await within(handle.result(), session.id, HANGS_MS);
    return `${result.status}: ${result.result}`;
  } catch (error) {
    const cause = (error as { cause?: { type?: string; message?: string } }).cause;
    return `failed: ${cause?.type ?? (error as Error).name}: ${cause?.message ?? (error as Error).message}`;
  } finally {
    isOver = true;
    await answering;
  }
}

const asText = (lines: Lines) => [...lines].map(([step, line]) => `${step}:${line}`).join(" ");

/** The lines of the live answers. */
async function liveLines({ agent, session }: Playing): Promise<Lines> {
  const rows = await transcriptOf(agent.database.store, session.id);
  const live = rows.filter((row) => row.supersededEpoch === null && row.slot === "assistant");
  return new Map(
    live.map((row) => {
      const [, line] = /Line (\d+)\./.exec(JSON.stringify(row.content)) ?? [];
      return [row.step, Number(line)];
    }),
  );
}

/** Notes the conversation in force for a run and those that continue it. Runs that were overtaken have none. */
async function note(playing: Playing, since?: string): Promise<void> {
  const lines = await liveLines(playing);
  for (const runId of await runIdsOf(playing.agent.database.store.db, playing.session.id)) {
    if (playing.lines.has(runId)) return;
    playing.lines.set(runId, lines);
    if (runId === since) return;
  }
}

async function resetOnce(playing: Playing): Promise<void> {
  const { session, shape, random, counts } = playing;
  const known = [...playing.lines.keys()];
  const base = random.pick(known);
  const made = await resetTo(playing, base);
  if (made === undefined) return;
  let newest = made;
  // Resets of what is in flight: the one that was just made, or another run while it works.
  if (random.chance(0.3)) {
    await eventually(
      "it has begun",
      () => session.model.requests.length > made.asked || undefined,
      3_000,
    ).catch(() => undefined);
    const again = await resetTo(playing, random.chance(0.5) ? base : random.pick(known));
    if (again !== undefined) {
      counts.overtaken += 1;
      newest = again;
    }
  }
  const outcome = await untilOver(playing, newest.runId);
  const where = `${shape.name} ${session.id}, ${newest.kind} ${newest.event} of ${newest.base} (${newest.isNewest ? "the newest" : "an older run"}), line ${playing.line}`;
  const wrong = (what: string) => void counts.violations.push(`${where}: ${what}`);
  count(counts.done, `${shape.name} ${newest.kind}`);
  if (!/^completed: Step \d+\. Line \d+\.$/.test(outcome)) wrong(outcome);
  await verify(playing, newest, wrong);
  await note(playing, newest.runId);
}

interface Made {
  readonly runId: string;
  readonly base: string;
  readonly kind: string;
  readonly event: string;
  readonly isNewest: boolean;
  /** Requests before it. */
  readonly asked: number;
}

/** @returns undefined if Temporal does not reset to that event */
async function resetTo(playing: Playing, base: string): Promise<Made | undefined> {
  const { agent, session, random, counts } = playing;
  const { client } = agent;
  const { events = [] } = await client.workflow.getHandle(session.id, base).fetchHistory();
  // Temporal refuses nearly all others.
  const isEnd = (candidate: HistoryEvent) =>
    /^workflowTask(Started|Completed|Failed|TimedOut)/.test(kindOf(candidate));
  const all = (events ?? []).slice(1);
  const event = random.pick(random.chance(0.85) ? all.filter(isEnd) : all);
  const newest = (await client.workflow.getHandle(session.id).describe()).runId;
  playing.line += 1;
  const asked = session.model.requests.length;
  try {
    const { runId } = await client.workflowService.resetWorkflowExecution({
      namespace: client.options.namespace,
      workflowExecution: { workflowId: session.id, runId: base },
      reason: "a reset run",
      workflowTaskFinishEventId: event.eventId ?? null,
      requestId: randomUUID(),
    });
    const kind = kindOf(event);
    return { runId, base, kind, event: String(event.eventId), isNewest: newest === base, asked };
  } catch (error) {
    playing.line -= 1;
    count(
      counts.refused,
      `Temporal: ${((error as Error).cause as Error | undefined)?.message ?? (error as Error).message}`.replaceAll(
        /[\d]+|[0-9a-f-]{36}/g,
        "N",
      ),
    );
    return undefined;
  }
}

/** Its conversation is that of the run that was reset, up to what that run's history had by then, and its own from there. */
async function verify(playing: Playing, made: Made, wrong: (what: string) => void): Promise<void> {
  const { agent, session, shape, lines, line } = playing;
  const { events } = await agent.client.workflow.getHandle(session.id, made.runId).fetchHistory();
  const list = events ?? [];
  const at = list.findLastIndex((event) => event.workflowTaskFailedEventAttributes?.newRunId === made.runId);
  const of = lines.get(made.base) ?? new Map<number, number>();
  const live = await liveLines(playing);
  const before = answeredIn(list.slice(0, at));
  const own = Math.min(...[...live].flatMap(([step, of]) => (of === line ? [step] : [])), Infinity);
  const first = before.length > 0 ? Math.max(...before) + 1 : own;
  const expected = new Map(
    [...live.keys()].map((step) => [step, step < first ? (of.get(step) ?? -1) : line]),
  );
  if (asText(live) !== asText(expected))
    wrong(`the answers are of ${asText(live)}, expected ${asText(expected)}`);
  const requests = session.model.requests
    .slice(made.asked)
    .filter((request) => request.cacheKey === session.id);
  for (const request of requests) {
    if (isSummaryRequest(request)) continue;
    const said = [...JSON.stringify(request.items).matchAll(/Step (\d+)\. Line (\d+)\./g)];
    // Requests of a reset that was overtaken.
    if (said.some(([, step, of]) => Number(step) >= first && Number(of) !== line)) continue;
    const other = said.find(([, step, of]) => expected.get(Number(step)) !== Number(of));
    if (other) wrong(`a request has "${other[0]}", expected line ${expected.get(Number(other[1]))}`);
    if (shape.isExact) compareViews(playing.views, request.items, stepOf(request), wrong);
  }
}
