/**
 * Resets a session of one shape again and again: to any event that Temporal allows, of any of its runs, also twice and during what is
 * in flight. Whatever is checked follows from the answers: each names its step and its line.
 */
import { randomUUID } from "node:crypto";
import type { AgentHarness } from "../agent-harness.ts";
import { checkFamily } from "../delegating.ts";
import { eventually } from "../eventually.ts";
import type { Random } from "../random.ts";
import type { HistoryEvent } from "../reset-run.ts";
import { isSummaryRequest } from "../scripted-summaries.ts";
import { stepOf } from "../crash/scripts.ts";
import { answeredIn, compareViews } from "./reset-evidence.ts";
import { asText, begin, liveLines, note, untilOver, type Playing } from "./play-session.ts";
import type { Shape } from "./shapes.ts";

export interface ResetCounts {
  /** By shape and kind of event. */
  readonly done: Map<string, number>;
  /** By reason. */
  readonly refused: Map<string, number>;
  /** Replaced by a later reset before they ended. */
  readonly overtaken: Map<string, number>;
  readonly violations: string[];
}

export const newCounts = (): ResetCounts => ({
  done: new Map(),
  refused: new Map(),
  overtaken: new Map(),
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

interface ResetOptions {
  readonly random: Random;
  readonly counts: ResetCounts;
  readonly resets: number;
}

interface Counted extends Playing, ResetOptions {}

/** @returns once the session was reset `resets` times, and was checked */
export async function resetSession(agent: AgentHarness, shape: Shape, options: ResetOptions): Promise<void> {
  const { counts, resets } = options;
  // The script reads the line of the object that `begin` made.
  const playing: Counted = Object.assign(await begin(agent, shape), options);
  for (let number = 0; number < resets; number += 1) await resetOnce(playing);
  try {
    await checkFamily(agent, playing.session);
  } catch (error) {
    counts.violations.push(`${shape.name} ${playing.session.id}: ${(error as Error).message}`);
  }
}

async function resetOnce(playing: Counted): Promise<void> {
  const { session, shape, random, counts } = playing;
  const known = [...playing.lines.keys()];
  const base = random.pick(known);
  const first = await resetTo(playing, base);
  if (first === undefined) return;
  let newest = first;
  // Resets of what is in flight: the one that was just made, or another run while it works.
  if (random.chance(0.3)) {
    await eventually(
      "it has begun",
      () => session.model.requests.length > first.requestsBefore || undefined,
      3_000,
    ).catch(() => undefined);
    const again = await resetTo(playing, random.chance(0.5) ? base : random.pick(known));
    if (again !== undefined) {
      count(counts.overtaken, `${shape.name} ${newest.kind}`);
      newest = { ...again, overtaken: { base: newest.base, line: again.line - 1 } };
    }
  }
  const outcome = await untilOver(playing, newest.runId);
  const where = `${shape.name} ${session.id}, ${newest.kind} ${newest.event} of ${newest.base} (${newest.isNewest ? "the newest" : "an older run"}), line ${playing.line}`;
  const wrong = (what: string) => void counts.violations.push(`${where}: ${what}`);
  count(counts.done, `${shape.name} ${newest.kind}`);
  if (!/^completed: .*Step \d+\. Line \d+\./.test(outcome)) wrong(outcome);
  const unsound = playing.unsound?.(session.id);
  if (unsound !== undefined) wrong(unsound);
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
  readonly requestsBefore: number;
  readonly line: number;
  /** Another reset before it, whose last request may come late. */
  readonly overtaken?: { readonly base: string; readonly line: number };
}

/** @returns undefined if Temporal does not reset to that event */
async function resetTo(playing: Counted, base: string): Promise<Made | undefined> {
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
  const requestsBefore = session.model.requests.length;
  try {
    const { runId } = await client.workflowService.resetWorkflowExecution({
      namespace: client.options.namespace,
      workflowExecution: { workflowId: session.id, runId: base },
      reason: "a reset run",
      workflowTaskFinishEventId: event.eventId ?? null,
      requestId: randomUUID(),
    });
    const kind = kindOf(event);
    const { line } = playing;
    return {
      runId,
      base,
      kind,
      event: String(event.eventId),
      isNewest: newest === base,
      requestsBefore,
      line,
    };
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
async function verify(playing: Counted, resetMade: Made, wrong: (what: string) => void): Promise<void> {
  const { agent, session, lines, line } = playing;
  const { events } = await agent.client.workflow.getHandle(session.id, resetMade.runId).fetchHistory();
  const list = events ?? [];
  const at = list.findLastIndex(
    (event) => event.workflowTaskFailedEventAttributes?.newRunId === resetMade.runId,
  );
  const of = lines.get(resetMade.base) ?? new Map<number, number>();
  const live = await liveLines(playing);
  const before = answeredIn(list.slice(0, at));
  const firstStep = Math.min(...[...live].flatMap(([step, of]) => (of === line ? [step] : [])), Infinity);
  const first = before.length > 0 ? Math.max(...before) + 1 : firstStep;
  const expected = new Map(
    [...live.keys()].map((step) => [step, step < first ? (of.get(step) ?? -1) : line]),
  );
  if (asText(live) !== asText(expected))
    wrong(`the answers are of ${asText(live)}, expected ${asText(expected)}`);
  const { overtaken } = resetMade;
  const isOvertaken = (step: number, of: number) =>
    overtaken !== undefined && (of === overtaken.line || of === lines.get(overtaken.base)?.get(step));
  const requests = session.model.requests
    .slice(resetMade.requestsBefore)
    .filter((request) => request.cacheKey === session.id);
  for (const request of requests) {
    if (isSummaryRequest(request)) continue;
    const statements = [...JSON.stringify(request.items).matchAll(/Step (\d+)\. Line (\d+)\./g)];
    // Requests of a reset that was overtaken.
    if (statements.some(([, step, of]) => Number(step) >= first && Number(of) !== line)) continue;
    const other = statements.find(([, step, of]) => expected.get(Number(step)) !== Number(of));
    const isLate = statements.every(([, step, of]) => isOvertaken(Number(step), Number(of)));
    if (other && isLate) continue;
    if (other) wrong(`a request has "${other[0]}", expected line ${expected.get(Number(other[1]))}`);
    compareViews(playing.views, request.items, stepOf(request), wrong);
  }
}
