/** A session's state as one document, from its rows. */
import { toBranchName } from "../../activities/config/git-settings.ts";
import { parseOutput } from "../../activities/config/output-schema.ts";
import { sessionCostUsd } from "../../activities/config/cost.ts";
import type { Price } from "../../activities/config/model-target.ts";
import { shorten } from "../../activities/text/cut.ts";
import type { DeliveryState } from "../../activities/contract/delivery.ts";
import { limitOf, type Limit } from "../../activities/contract/limits.ts";
import { sessionBill } from "../../activities/store/model-calls.ts";
import type { ListedQuestion } from "../../activities/store/questions.ts";
import type { SessionFigures, SessionRow } from "../../activities/store/reading.ts";
import type { PublicationRow, Repository } from "../../activities/store/repositories.ts";
import type { NextInputEstimate } from "../../activities/contract/request-size.ts";
import type { RunDescription } from "../connect/describe-run.ts";
import type { FollowStatus } from "../view/followed-words.ts";
import { sessionHasEnded } from "./start-session.ts";

/** One JSON document; fields are only ever added. Source: requirement 1.2. */
export interface SessionStatusDocument {
  readonly id: string;
  readonly workflowId: string;
  readonly runId: string | null;
  /** Trace of that run, if its workers send traces. */
  readonly traceId: string | null;
  readonly status: string;
  readonly task: string;
  /** Who started it; null if unknown. */
  readonly owner: string | null;
  /** 1 to 5, where 1 goes first; null: Temporal's default, 3. */
  readonly priority: number | null;
  /** The tenant that the session works for; null if not given. */
  readonly tenant: string | null;
  readonly step: number;
  readonly maxSteps: number | null;
  readonly epoch: number;
  readonly model: string | null;
  readonly queue: readonly { readonly id: string; readonly text: string; readonly queuedAt: string }[];
  /** Open questions, oldest first: their text at most 200 characters. */
  readonly questions: readonly OpenQuestionStatus[];
  /** Tokens of the next request, and of the model's whole window. */
  readonly context: { readonly used: number; readonly limit: number; readonly estimated: boolean };
  readonly compactionRounds: number;
  readonly usage: SessionFigures["usage"];
  /** USD so far; null if the model's price is not known. */
  readonly costUsd: number | null;
  /** The estimated part, of requests that failed or were lost without a bill. */
  readonly costEstimatedUsd: number;
  /** The provider's token counts contradict the session's size, so they are ignored. */
  readonly usageDoubtful: boolean;
  readonly result: string | null;
  /** The parsed answer of a completed session with --output-schema; null in all others. */
  readonly output: unknown;
  /** `deadline`: ISO time, known while its workflow answers. */
  readonly limits: {
    readonly costUsd: number | null;
    readonly maxCostUsd: number | null;
    readonly deadline: string | null;
  };
  /** Which limit ended it, of `max_steps`. */
  readonly limit: Limit | null;
  readonly error: unknown;
  readonly createdAt: string;
  readonly endedAt: string | null;
  /** True if the workflow itself answered; false if only Postgres did (no worker, or it is over). */
  readonly live: boolean;
  /** Build of the only workers that may continue its run; null if any may. */
  readonly build: string | null;
  /** ISO time until which nothing is asked because the model's limit is used up, or its request failed; null if it does not wait. */
  readonly waitsUntil: string | null;
  /** What it waits for; null if it does not. Only `person` and `budget` wait for somebody. */
  readonly waitsFor: "person" | "time" | "process" | "forge" | "budget" | null;
  /** Of a wait that the model asked for: its own words. */
  readonly waitReason: string | null;
  /** What is being retried repeatedly, in words; null if nothing is. */
  readonly trouble: string | null;
  /** The run's status in Temporal, null if it did not answer. */
  readonly workflowStatus: string | null;
  readonly lastSeq: number;
  /** The sandbox image: its requested name, and the digest or id in its newest sandbox; null until there is one, and in lists. */
  readonly image: { readonly name: string; readonly digest: string | null } | null;
  /** Null if the session works on no repository; `pushed` and `pullRequest` are null until there is one. */
  readonly git: SessionGitStatus | null;
  readonly delivery: DeliveryState;
  /** Its pull request, if that is or was followed until it is merged; null otherwise. */
  readonly follow: FollowStatus | null;
  /** What `verify` came to in the newest run: `passed`, `failed`, `unavailable` or `changed-checks`; null if nothing was verified. */
  readonly verified: string | null;
  /** A stopped sandbox that is kept for when the session goes on: on which host, until when (ISO time). Null in lists. */
  /** Its sandbox is stopped and kept: where, until when, and what it takes there if that could be counted. */
  readonly parked: { readonly host: string; readonly until: string; readonly bytes: number | null } | null;
  /** Why a sandbox that was stopped and kept was removed before the session went on. */
  readonly unparked: string | null;
  /** Files that no save has in their present state, at most 200; empty in lists. */
  readonly notSaved: readonly { readonly path: string; readonly reason: string }[];
  /** Steps, or results of a step's calls, that a database restored from an older copy lacks; empty in lists. */
  readonly missing: readonly {
    readonly from: number;
    readonly to: number;
    readonly calls?: number | undefined;
  }[];
  /** For a delegate: its parent, and the call's key in the ledger. */
  readonly parent: { readonly id: string; readonly call: string } | null;
  /** Its delegates, oldest first. */
  readonly children: readonly ChildStatus[];
}

export interface ChildStatus {
  readonly id: string;
  readonly status: string;
  readonly step: number;
  readonly costUsd: number | null;
  readonly about: string;
}

interface OpenQuestionStatus {
  readonly id: string;
  /** The session that asks: this one, or one of its delegates. */
  readonly session: string;
  readonly kind: string;
  readonly asked: string;
  readonly text: string;
  readonly options: readonly string[] | null;
  readonly default: string | null;
  readonly expiresAt: string | null;
}

interface SessionGitStatus {
  readonly url: string;
  /** The commit that it started from; null until it was cloned. */
  readonly base: string | null;
  readonly branch: string;
  readonly pushed: string | null;
  readonly pullRequest: string | null;
  /** What the newest push and pull request did not get as it was asked for, such as a label that the forge does not have. */
  readonly remarks: readonly string[];
}

/** What is known about a session besides its row; undefined if unknown. */
interface Known {
  readonly figures: SessionFigures | undefined;
  readonly size?: NextInputEstimate | undefined;
  readonly run?: RunDescription | undefined;
  readonly isDoubted?: boolean;
}

const NO_FIGURES: SessionFigures = {
  step: 0,
  compactionRounds: 0,
  usage: { input: 0, cached: 0, output: 0, reasoning: 0, calls: 0 },
  bill: sessionBill(undefined),
  lastSeq: 0,
  waitsUntil: null,
  wait: null,
};

/** The part that rows show. */
export function statusDocument(
  row: SessionRow,
  { figures = NO_FIGURES, size, run, isDoubted = false }: Known,
): SessionStatusDocument {
  const config = knownConfig(row.config);
  const settings = settingsShown(config);
  const end = endOf(row, run);
  const costUsd = sessionCostUsd(figures.bill, config);
  return {
    id: row.id,
    workflowId: row.id,
    runId: run?.runId ?? row.runId,
    traceId: null,
    status: statusOf(row, run),
    task: row.task,
    owner: row.owner,
    priority: settings.priority,
    tenant: settings.tenant,
    step: figures.step,
    maxSteps: settings.maxSteps,
    epoch: row.epoch,
    model: settings.model,
    queue: [],
    questions: [],
    context: {
      used: size?.tokens ?? 0,
      limit: settings.contextWindow,
      estimated: size?.estimated ?? true,
    },
    compactionRounds: figures.compactionRounds,
    usage: figures.usage,
    costUsd,
    costEstimatedUsd: figures.bill.estimatedUsd,
    usageDoubtful: isDoubted,
    result: end.result,
    output: end.output,
    limits: { costUsd, maxCostUsd: settings.maxCostUsd, deadline: null },
    limit: limitOf(row.status, row.error) ?? null,
    error: row.error ?? null,
    createdAt: row.createdAt.toISOString(),
    endedAt: end.endedAt,
    live: false,
    build: run?.build ?? null,
    ...waitShown(end.endedAt === null, figures),
    trouble: run?.trouble ?? null,
    workflowStatus: run?.status ?? null,
    lastSeq: figures.lastSeq,
    image: settings.image,
    git: null,
    delivery: "none",
    follow: null,
    verified: row.verified,
    parked: null,
    unparked: null,
    notSaved: [],
    missing: [],
    parent: row.parentId === null ? null : { id: row.parentId, call: row.parentCall ?? "" },
    children: [],
  };
}

/** A limit of the model is waited for like a time. */
function waitShown(isOpen: boolean, { waitsUntil, wait }: SessionFigures) {
  if (!isOpen) return { waitsUntil: null, waitsFor: null, waitReason: null };
  const until = wait?.until ?? waitsUntil;
  return {
    waitsUntil: until,
    waitsFor: wait?.waitsFor ?? (waitsUntil === null ? null : ("time" as const)),
    waitReason: wait?.reason ?? null,
  };
}

function settingsShown(config: KnownConfig) {
  return {
    priority: config.priority ?? null,
    tenant: config.tenant ?? null,
    maxSteps: config.limits?.maxSteps ?? null,
    maxCostUsd: config.limits?.maxCostUsd ?? null,
    model: config.model ?? null,
    contextWindow: config.contextWindow ?? 0,
    image: config.sandbox === undefined ? null : { name: config.sandbox.image, digest: null },
  };
}

/** No end while a new run has resumed the session, although its row still has the previous run's end. */
function endOf(row: SessionRow, run: RunDescription | undefined) {
  if (isResumed(row, run)) return { result: null, output: null, endedAt: null };
  return {
    result: row.result,
    output: parseOutput(knownConfig(row.config), row)?.value ?? null,
    endedAt: row.endedAt?.toISOString() ?? null,
  };
}

export function questionStatus(question: ListedQuestion): OpenQuestionStatus {
  const { id, session, kind, asked, text, options, default: fallback, expiresAt } = question;
  const labels = options && options.map(({ label }) => label);
  return {
    id,
    session,
    kind,
    asked,
    text: shorten(text, 200),
    options: labels,
    default: fallback,
    expiresAt,
  };
}

export function gitStatus(
  { id, config }: SessionRow,
  repository: Repository | undefined,
  publications: readonly PublicationRow[],
): SessionGitStatus | null {
  const configured = knownConfig(config).repository;
  const url = repository?.url ?? configured?.url;
  if (url === undefined) return null;
  const findDone = (kind: string) =>
    publications.find((publication) => publication.kind === kind && publication.status === "done");
  const [pushed, opened] = [findDone("push"), findDone("pull-request")];
  // What it did not get, the run that opened it has said.
  const opens = publications.filter(
    ({ url: of, status }) => of === opened?.url && status === "done" && of !== null,
  );
  return {
    url,
    base: repository?.baseCommit ?? null,
    branch: repository?.branch ?? toBranchName({ branch: configured?.branch ?? "" }, id),
    pushed: pushed?.commit ?? null,
    pullRequest: opened?.url ?? null,
    remarks: [...new Set([pushed, ...opens].flatMap((row) => row?.remarks ?? []))],
  };
}

/** A new run of an ended session, which no worker has started: the row still describes the previous one. */
function isResumed(row: SessionRow, run: RunDescription | undefined): boolean {
  return sessionHasEnded(row) && run?.status === "RUNNING" && run.runId !== row.runId;
}

/** A run that was ended from outside could not store its end. */
function statusOf(row: SessionRow, run: RunDescription | undefined): string {
  if (isResumed(row, run)) return "active";
  if (sessionHasEnded(row)) return row.status;
  return CLOSED.get(run?.status ?? "") ?? row.status;
}

const CLOSED = new Map([
  ["TERMINATED", "cancelled"],
  ["CANCELLED", "cancelled"],
  ["FAILED", "failed"],
  ["TIMED_OUT", "failed"],
]);

interface KnownConfig {
  readonly model?: string;
  readonly outputSchema?: unknown;
  readonly contextWindow?: number;
  readonly price?: Price;
  readonly tier?: string;
  readonly limits?: { readonly maxSteps?: number; readonly maxCostUsd?: number };
  readonly repository?: { readonly url: string; readonly branch?: string };
  readonly sandbox?: { readonly image: string };
  readonly priority?: number;
  readonly tenant?: string;
}

/** The row's configuration as far as it is complete: a row that this version cannot read whole is shown, not refused. */
export function knownConfig(config: unknown): KnownConfig {
  return typeof config === "object" && config !== null ? (config as KnownConfig) : {};
}
