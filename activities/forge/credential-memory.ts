/**
 * What a worker remembers of each credential while it runs: when the forge wants to be asked again, how many requests are left, and
 * its last answers, which it need not send again. All followers and sessions with the same credential share it; another worker has its
 * own, and finds out by itself. A token that is renewed, such as an App's each hour, is another credential.
 */
import { createHash } from "node:crypto";
import type { ForgePlace } from "../config/git-settings.ts";

/** GitHub counts the requests to its two APIs apart. Source: docs.github.com/graphql/overview/rate-limits-for-the-graphql-api. */
type Pool = "rest" | "graphql";

/** One window of a forge's count. */
interface Window {
  readonly resetAtMs: number;
  /** What was left when it was first seen. */
  readonly first: number;
  remaining: number;
}

interface KeptAnswer {
  readonly etag: string;
  readonly text: string;
}

interface CredentialMemory {
  /** Nothing is asked before, by the process' own clock. */
  quietUntilMs: number;
  readonly windows: Map<Pool, Window>;
  /** By address; the one that was used last is the last. */
  readonly answers: Map<string, KeptAnswer>;
  answerChars: number;
}

export interface ForgeRequest {
  readonly forge: ForgePlace;
  readonly token: string | undefined;
  /** It is only to see whether something has changed: half of what is left is for what has to be written. */
  readonly isLook?: boolean | undefined;
  readonly path: string;
}

/** Chosen: more credentials than one worker has in use. */
const MAX_CREDENTIALS = 100;
/** Of one credential's answers. Chosen: some hundred pull requests. */
const MAX_ANSWER_CHARS = 16 << 20;
/** A longer answer is not kept. Chosen. */
const MAX_KEPT_CHARS = 1 << 20;
/** GitHub's names, and GitLab's. */
const KINDS = ["x-ratelimit", "ratelimit"] as const;

const memories = new Map<string, CredentialMemory>();

function memoryFor({ forge, token }: ForgeRequest): CredentialMemory {
  const key = createHash("sha256")
    .update(JSON.stringify([forge.api, token ?? null]))
    .digest("hex");
  const known = memories.get(key) ?? {
    quietUntilMs: 0,
    windows: new Map(),
    answers: new Map(),
    answerChars: 0,
  };
  memories.delete(key);
  memories.set(key, known);
  const [oldest] = memories.keys();
  if (memories.size > MAX_CREDENTIALS && oldest !== undefined) memories.delete(oldest);
  return known;
}

const poolFor = ({ path }: ForgeRequest): Pool => (path === "/graphql" ? "graphql" : "rest");

/**
 * How long a request has to wait for its turn, in ms; undefined: it may be made now.
 * @param nowMs the wall clock, which the forge's counts are by
 */
export function waitForTurn(
  request: ForgeRequest,
  nowMs: number,
  processMs = performance.now(),
): number | undefined {
  const { quietUntilMs, windows } = memoryFor(request);
  if (quietUntilMs > processMs) return quietUntilMs - processMs;
  const window = windows.get(poolFor(request));
  if (window === undefined || window.resetAtMs <= nowMs) return undefined;
  const isSpent = window.remaining <= (request.isLook === true ? Math.floor(window.first / 2) : 0);
  return isSpent ? window.resetAtMs - nowMs : undefined;
}

/** Nothing is asked with this credential for so long: the forge wants that. */
export function leaveAlone(request: ForgeRequest, pauseMs: number): void {
  const memory = memoryFor(request);
  memory.quietUntilMs = Math.max(memory.quietUntilMs, performance.now() + pauseMs);
}

/** Reads from an answer how many requests are left. */
export function noteLeft(request: ForgeRequest, headers: Headers): void {
  for (const kind of KINDS) {
    const [remaining, reset] = ["remaining", "reset"].map((what) => headers.get(`${kind}-${what}`)?.trim());
    if (!/^\d+$/.test(remaining ?? "") || !/^\d+$/.test(reset ?? "")) continue;
    const { windows } = memoryFor(request);
    const pool = poolFor(request);
    const resetAtMs = Number(reset) * 1_000;
    const known = windows.get(pool);
    const left = Number(remaining);
    // Answers may come in another order than they were made.
    if (known?.resetAtMs === resetAtMs) known.remaining = Math.min(known.remaining, left);
    else if (known === undefined || known.resetAtMs < resetAtMs)
      windows.set(pool, { resetAtMs, first: left, remaining: left });
    return;
  }
}

/** The last answer to this request that is still kept. */
export function keptAnswer(request: ForgeRequest): KeptAnswer | undefined {
  const { answers } = memoryFor(request);
  const answer = answers.get(request.path);
  if (answer === undefined) return undefined;
  answers.delete(request.path);
  answers.set(request.path, answer);
  return answer;
}

/** Keeps an answer that the forge can be asked about. */
export function keepAnswer(request: ForgeRequest, etag: string | null, text: string): void {
  if (etag === null || text.length > MAX_KEPT_CHARS) return;
  const memory = memoryFor(request);
  const { answers } = memory;
  memory.answerChars += text.length - (answers.get(request.path)?.text.length ?? 0);
  answers.delete(request.path);
  answers.set(request.path, { etag, text });
  for (const [path, { text: oldest }] of answers) {
    if (memory.answerChars <= MAX_ANSWER_CHARS) break;
    answers.delete(path);
    memory.answerChars -= oldest.length;
  }
}
