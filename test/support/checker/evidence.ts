/** What the offline checker reads: everything that a session left behind, as plain data. */
import type { AssistantPart, ToolResultPart } from "../../../activities/contract/message.ts";
import type { SessionEvent } from "../../../activities/store/event.ts";
import type {
  compactionEvents,
  events,
  guidance,
  messages,
  modelCalls,
  runs,
  sessions,
  streamChunks,
  toolCalls,
  verifications,
  waits,
} from "../../../activities/store/schema/index.ts";
import type { MessageMeta } from "../../../activities/store/transcript.ts";
import type { ServedRequest } from "../model-server/wire.ts";

export type MessageRow = typeof messages.$inferSelect;
export type CallRow = typeof toolCalls.$inferSelect;
export type EventRow = typeof events.$inferSelect;
export type BillRow = typeof modelCalls.$inferSelect;
export type RoundRow = typeof compactionEvents.$inferSelect;
export type WaitRow = typeof waits.$inferSelect;

export interface Evidence {
  readonly session: typeof sessions.$inferSelect;
  /** Counters: the highest message sequence and event seq that were assigned. */
  readonly cursor: { readonly messageSequence: number; readonly eventSeq: number };
  /** In the order in which they claimed the session. */
  readonly runs: readonly (typeof runs.$inferSelect)[];
  /** All lines, by sequence. */
  readonly messages: readonly MessageRow[];
  readonly calls: readonly CallRow[];
  readonly rounds: readonly RoundRow[];
  readonly bills: readonly BillRow[];
  /** Calls of `wait`, of all lines. */
  readonly waits: readonly WaitRow[];
  /** What commands of `verify` came to, of all lines. */
  readonly verifications: readonly (typeof verifications.$inferSelect)[];
  /** What is counted for people and budgets; undefined if there is no such row. */
  readonly spent: { readonly calls: number; readonly costUsd: number } | undefined;
  /** Requests for which money is still reserved. */
  readonly reserved: number;
  /** Guidance that was parked in Postgres. */
  readonly parked: readonly (typeof guidance.$inferSelect)[];
  /** By seq. */
  readonly events: readonly EventRow[];
  readonly chunks: readonly (typeof streamChunks.$inferSelect)[];
  /** Temporal's runs that could be fetched, oldest first. */
  readonly histories: readonly RunHistory[];
  /** The strict model server's log; without it, its claims are not checked. */
  readonly served: readonly ServedRequest[] | undefined;
  /** Containers and volumes that carry the session's label after a grace period. */
  readonly sandboxes: readonly SandboxEvidence[];
  /** Lines of each file `*.marks` of the workspace as last saved; absent if nothing was saved. */
  readonly marks: ReadonlyMap<string, readonly string[]> | undefined;
  /** Values that must appear nowhere. */
  readonly canaries: readonly string[];
  /** What a watcher received, live or later; absent if no one watched. */
  readonly watched: readonly SessionEvent[] | undefined;
  /** Requests that may have reached the model without a bill: one for each worker that was killed. */
  readonly kills: number;
}

export interface RunHistory {
  readonly runId: string;
  /** Temporal's status: `RUNNING`, `COMPLETED`, `CONTINUED_AS_NEW` … */
  readonly status: string;
  /** Ids of guidance as it was accepted, in order. */
  readonly accepted: readonly string[];
  /** The history with its payloads readable. */
  readonly text: string;
  /** Bytes of the largest payload. */
  readonly largestPayload: number;
  /** Why the history does not replay on today's code; absent if it does. */
  readonly replayFailure: string | undefined;
}

export interface SandboxEvidence {
  readonly kind: "container" | "volume";
  readonly name: string;
}

/** Messages of the current line, by sequence, with compacted rows and without the prompt. */
export function liveRows({ messages: rows }: Pick<Evidence, "messages">): MessageRow[] {
  return rows.filter((row) => row.supersededEpoch === null && row.role !== "system");
}

/** The beginning of a fork's own first message. */
const FORK_NOTE = "[This conversation continues from an earlier point of session ";

/**
 * The sequence of the note with which a fork begins, 0 for any other session. Everything before it was copied: its
 * bills, events and waiting messages belong to the other session, and so do the missing sequences.
 */
export function forkedAt({ messages: rows }: Pick<Evidence, "messages">): number {
  const notes = rows.filter(
    (row) => row.kind === "notice" && (row.content as { text?: string }[])[0]?.text?.startsWith(FORK_NOTE),
  );
  return Math.max(0, ...notes.map((row) => row.sequence));
}

/** Steps that a restored database lacks, as the session's events say. */
export function missingSteps({ events: list }: Pick<Evidence, "events">): Set<number> {
  const steps = new Set<number>();
  for (const { type, data } of list) {
    if (type !== "record:missing") continue;
    const { from, to, calls } = data as { from: number; to: number; calls?: number };
    if (calls === undefined) for (let step = from; step <= to; step += 1) steps.add(step);
  }
  return steps;
}

export function metaOf(row: MessageRow): MessageMeta {
  return (row.meta ?? {}) as MessageMeta;
}

/** Ids of an answer's calls, in order. */
export function callIdsOf(row: MessageRow): string[] {
  if (row.role !== "assistant") return [];
  return (row.content as AssistantPart[]).flatMap((part) =>
    part.type === "tool-call" ? [part.toolCallId] : [],
  );
}

export function resultOf(row: MessageRow): ToolResultPart | undefined {
  return row.role === "tool" ? (row.content as ToolResultPart[])[0] : undefined;
}

/** Temporal's status of the newest run; undefined if there is no history. */
export function lastStatus({ histories }: Pick<Evidence, "histories">): string | undefined {
  return histories.at(-1)?.status;
}

/** True if the newest run closed by itself: then nothing may be left open. */
export function isClosed(evidence: Pick<Evidence, "histories">): boolean {
  return ["COMPLETED", "FAILED", "CANCELLED"].includes(lastStatus(evidence) ?? "");
}

/** Names a row for people. */
export function placeOf(row: Pick<MessageRow, "sequence" | "epoch" | "step" | "slot">): string {
  return `message ${row.sequence} (epoch ${row.epoch}, step ${row.step}, ${row.slot})`;
}
