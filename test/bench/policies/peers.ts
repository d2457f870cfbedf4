/**
 * The policies of other agents, as the survey of coding agents has them (2026-11; OpenCode's, Gemini's and Cline's
 * sources were looked up). If a rule of theirs would wait for a message of the person, as Gemini's split does, it
 * may act at any answer here: in a long run it would otherwise hardly ever act, so this favours them.
 */
import type { StoredMessage } from "../../../activities/contract/message.ts";
import { shownMessage } from "../../../activities/transcript/view.ts";
import { rowsOf, says } from "../../support/rows.ts";
import { writtenPaths } from "./facts.ts";
import { countTokens, MAX_OUTPUT_TOKENS, rowTokens, wordsOf, type Policy, type Replay } from "./replay.ts";
import { plainSummary, scriptedSummary } from "./scripted-summary.ts";

/** Length of a summary if the peer sets no target. */
const FREE_SUMMARY_TOKENS = 1_500;
/** Words that a summariser's own instructions take. */
const INSTRUCTION_TOKENS = 500;
/** Characters of one tool result in a summariser's input. */
const RESULT_CHARS = 2_000;

/** Head and tail by characters. */
function middleCut(text: string, maxChars: number, headShare = 0.5): string {
  if (text.length <= maxChars) return text;
  const head = Math.floor(maxChars * headShare);
  return `${text.slice(0, head)}\n[${text.length - maxChars} characters cut]\n${text.slice(head - maxChars)}`;
}

/** The request as the policy last saw it billed, without what tools gave since. */
const lastBilled = ({ last }: Replay) => last.input + last.output;

/** First row of the newest batches that come to at most so many tokens; never inside a batch. */
function tailFrom(rows: readonly StoredMessage[], maxTokens: number, maxMessages = Infinity): number {
  let from = rows.length;
  let tokens = 0;
  for (let at = rows.length - 1; at > 0; at -= 1) {
    const row = rows[at] as StoredMessage;
    tokens += rowTokens(row);
    if (tokens > maxTokens || rows.length - at > maxMessages) break;
    if (row.role !== "tool") from = at;
  }
  return from;
}

interface Round {
  /** First row that stays. */
  readonly from: number;
  readonly targetTokens: number;
  /** What the summariser reads of a row. */
  readonly read: (row: StoredMessage) => string;
  /** Asks in the live conversation instead, whose prefix is cached. */
  readonly live?: boolean;
  /** Asks a second time whether something is missing. */
  readonly probe?: boolean;
  /** Rows put in before the tail, next to the summary. */
  readonly beside?: (rows: readonly StoredMessage[]) => readonly StoredMessage[];
  /** Added to the summary by code. */
  readonly appendix?: string;
}

/** One round: everything before `from` becomes a summary at the front. */
function summarise(replay: Replay, round: Round): void {
  const { rows, settings } = replay;
  const old = rows.slice(0, round.from);
  if (old.every((row) => row.kind === "summary")) return;
  const seen = old.map(round.read).join("\n");
  const summary = plainSummary(scriptedSummary(settings.trajectory.facts, seen, round.targetTokens));
  const output = countTokens(summary);
  const request = round.live
    ? [...replay.liveRequest(), { key: {}, tokens: INSTRUCTION_TOKENS }]
    : [{ key: {}, tokens: countTokens(seen) + INSTRUCTION_TOKENS }];
  replay.billSummary(request, output);
  if (round.probe) replay.billSummary([...request, { key: {}, tokens: output + INSTRUCTION_TOKENS }], output);
  const [row] = rowsOf(
    [[says(`${summary}\n${round.appendix ?? ""}`), { kind: "summary" }]],
    replay.nextSequence(),
  );
  replay.rows = [...(round.beside?.(old) ?? []), row as StoredMessage, ...rows.slice(round.from)];
  replay.rounds += 1;
  replay.last = { input: 0, output: 0 };
}

/** A row with its tool result cut. */
const shortened = (row: StoredMessage) => {
  const words = wordsOf(shownMessage(row));
  return row.role === "tool" ? words.slice(0, RESULT_CHARS) : words;
};
const whole = (row: StoredMessage) => wordsOf(shownMessage(row));

export interface OpenCodeOptions {
  readonly prune?: boolean;
  /** Its optional way of asking for the summary in the live conversation. */
  readonly suffix?: boolean;
}

/** OpenCode v1: usable = window − buffer; tail a quarter of that, 2,000–15,000 tokens. */
export function openCode(windowTokens: number, { prune, suffix }: OpenCodeOptions = {}): Policy {
  // Its buffer is the smaller of 20,000 and the longest answer, and comes on top of that.
  const usable = windowTokens - (windowTokens < 64_000 ? 2 * MAX_OUTPUT_TOKENS : 20_000);
  const tail = Math.min(15_000, Math.max(2_000, usable / 4));
  const round = (replay: Replay) =>
    summarise(replay, {
      from: tailFrom(replay.rows, tail),
      targetTokens: FREE_SUMMARY_TOKENS,
      read: shortened,
      live: suffix === true,
    });
  return {
    name: `OpenCode${prune ? ", prune on" : ""}${suffix ? ", suffix" : ""}`,
    // 50 KB or 2,000 lines.
    limit: (_tool, output) => middleCut(output, 50_000),
    async between(replay, overflow) {
      if (overflow || lastBilled(replay) >= usable) round(replay);
    },
    ...(prune ? { beforeUser: (replay: Replay) => pruneAsOpenCode(replay) } : {}),
  };
}

/** Old results beyond the newest 40,000 tokens, if that is 20,000 at least; the last two turns are spared. */
function pruneAsOpenCode(replay: Replay): void {
  const hidden = new Set<StoredMessage>();
  let [total, saved, turns] = [0, 0, 0];
  for (const row of replay.rows.toReversed()) {
    if (row.kind === "task" || row.kind === "guidance") turns += 1;
    // It runs at the end of a turn, whose message is the first of the two that are spared.
    if (turns < 2) continue;
    if (row.kind === "summary" || row.prunedStep !== undefined) break;
    if (row.role !== "tool") continue;
    total += rowTokens(row);
    if (total <= 40_000) continue;
    hidden.add(row);
    saved += rowTokens(row);
  }
  if (saved <= 20_000) return;
  replay.prunes += 1;
  replay.rows = replay.rows.map((row) => (hidden.has(row) ? { ...row, prunedStep: replay.step } : row));
}

/** Gemini CLI: at half the window the newest 30 % stay; a second call looks for what the first forgot. */
export function gemini(windowTokens: number): Policy {
  return {
    name: "Gemini CLI",
    limit: (_tool, output) => middleCut(output, 40_000, 0.2),
    async between(replay, overflow) {
      if (!overflow && replay.requestTokens < windowTokens / 2) return;
      const messages = replay.requestTokens - replay.prefixTokens;
      const from = tailFrom(replay.rows, messages * (overflow ? 0.15 : 0.3));
      // Of tool results, the newest 50,000 tokens are read.
      let room = 50_000;
      const unread = new Set(
        replay.rows
          .slice(0, from)
          .toReversed()
          .filter((row) => row.role === "tool" && (room -= rowTokens(row)) < 0),
      );
      const read = (row: StoredMessage) => (unread.has(row) ? whole(row).slice(-1_000) : whole(row));
      summarise(replay, { from, targetTokens: FREE_SUMMARY_TOKENS, read, probe: true });
    },
  };
}

/** Cline: at 90 % of the largest input the newest 20,000 tokens stay; old reads of the same file go in batches. */
export function cline(windowTokens: number): Policy {
  const trigger = 0.9 * (windowTokens - MAX_OUTPUT_TOKENS);
  return {
    name: "Cline",
    limit: (_tool, output) => middleCut(output, 48_000),
    async between(replay, overflow) {
      replaceOldReads(replay);
      if (!overflow && replay.requestTokens < trigger) return;
      const most = Math.min(20_000, 0.7 * trigger - replay.prefixTokens - FREE_SUMMARY_TOKENS);
      const from = tailFrom(replay.rows, overflow ? most / 2 : most);
      const appendix = `Files: ${[...changedPaths(replay.rows.slice(0, from))].join(", ")}`;
      summarise(replay, { from, targetTokens: FREE_SUMMARY_TOKENS, read: shortened, appendix });
    },
  };
}

const OUTDATED = "[outdated - see the latest file content]";
const READ_BATCH_BYTES = 64 * 1024;

function replaceOldReads(replay: Replay): void {
  const newest = new Map<string, StoredMessage>();
  const old = new Set<StoredMessage>();
  const paths = readPaths(replay.rows);
  for (const row of replay.rows) {
    const path = row.role === "tool" ? paths.get(row.content[0].toolCallId) : undefined;
    if (path === undefined || (row.role === "tool" && row.content[0].text === OUTDATED)) continue;
    const before = newest.get(path);
    if (before !== undefined) old.add(before);
    newest.set(path, row);
  }
  const bytes = [...old].reduce((sum, row) => sum + wordsOf(shownMessage(row)).length, 0);
  if (bytes < READ_BATCH_BYTES) return;
  replay.prunes += 1;
  replay.rows = replay.rows.map((row) =>
    old.has(row) && row.role === "tool" ? { ...row, content: [{ ...row.content[0], text: OUTDATED }] } : row,
  );
}

function readPaths(rows: readonly StoredMessage[]): Map<string, string> {
  const calls = rows.flatMap((row) => (row.role === "assistant" ? row.content : []));
  return new Map(
    calls.flatMap((part) =>
      part.type === "tool-call" && part.toolName === "read_file"
        ? [[part.toolCallId, (part.input as { path: string }).path]]
        : [],
    ),
  );
}

function changedPaths(rows: readonly StoredMessage[]): Set<string> {
  const before = rows.flatMap((row) =>
    row.kind === "summary" ? (/^Files: (.*)$/m.exec(whole(row))?.[1]?.split(", ") ?? []) : [],
  );
  const calls = rows.flatMap((row) => (row.role === "assistant" ? row.content : []));
  const paths = calls.flatMap((part) =>
    part.type === "tool-call"
      ? [
          (part.input as { path?: string }).path ?? "",
          ...writtenPaths({ name: part.toolName, input: part.input }),
        ]
      : [],
  );
  return new Set([...before, ...paths].filter((path) => path.includes(".")));
}

/** 80 % of what 11,000 of reserves leave; the task and the newest ten messages stay. */
export function eightyTen(windowTokens: number): Policy {
  const trigger = 0.8 * (windowTokens - 11_000);
  return {
    name: "80 %, keep 10 messages",
    limit: (_tool, output) => middleCut(output, 30_000),
    async between(replay, overflow) {
      if (!overflow && replay.requestTokens < trigger) return;
      const from = tailFrom(replay.rows, Infinity, overflow ? 4 : 10);
      const beside = (old: readonly StoredMessage[]) => old.filter((row) => row.kind === "task");
      summarise(replay, { from, targetTokens: 800, read: whole, beside });
    },
  };
}
