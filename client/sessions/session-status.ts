/** A session's state for `status`, and the list of sessions: from Postgres, and from the workflow if that answers soon. */
import { shorten } from "../../activities/text/cut.ts";
import { findFollow, listFollowRounds, listFollows } from "../../activities/store/follows.ts";
import { listQuestions } from "../../activities/store/questions.ts";
import { listSessions, readFigures, type SessionRow, type Listing } from "../../activities/store/reading.ts";
import { missingRows } from "../../activities/store/missing-steps.ts";
import { wasReported } from "../../activities/store/reported.ts";
import { toDeliveryState, findRepository, listPublications } from "../../activities/store/repositories.ts";
import { findSandbox, type SandboxRow } from "../../activities/store/sandboxes.ts";
import { traceOf } from "../../activities/store/traces.ts";
import { knownGuidance, readWaiting } from "../../activities/store/guidance.ts";
import { askWithin, withTimeout } from "../../temporal/patience.ts";
import { statusQuery, type SessionView } from "../../workflows/messages.ts";
import type { Services } from "../connect/connection.ts";
import { describeRun } from "../connect/describe-run.ts";
import { isKeyMissing } from "../connect/readiness.ts";
import { followStatus } from "../view/followed-words.ts";
import { findByReference } from "../lookup/find-by-reference.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { sessionHasEnded } from "./start-session.ts";
import {
  gitStatus,
  questionStatus,
  statusDocument,
  type ChildStatus,
  type SessionStatusDocument,
} from "./status-document.ts";

/** For all together: a list is useful without what Temporal adds. */
const LIST_MS = 10_000;
const QUERY_MS = 5_000;

/** Also without Temporal or a worker: then what they add is missing, after at most 10 s. */
export async function readStatus(services: Services, row: SessionRow): Promise<SessionStatusDocument> {
  const ended = sessionHasEnded(row);
  const { sessionSizes } = await import("../../activities/context/context-size.ts");
  const [
    figures,
    size,
    waiting,
    run,
    repository,
    publications,
    view,
    isDoubted,
    questions,
    children,
    sandbox,
    missing,
    follow,
  ] = await Promise.all([
    readFigures(services.store.db, [row.id]).then((all) => all.get(row.id)),
    sessionSizes(services.store.db, [row.id]).then((all) => all.get(row.id)),
    readWaiting(services.store.db, row.id),
    describeRun(services, row.id),
    findRepository(services.store.db, row.id),
    listPublications(services.store.db, row.id),
    ended ? undefined : askWorkflow(services, row.id),
    wasReported(services.store.db, row.id, "usageDoubtful"),
    listQuestions(services.store.db, { of: row.id }),
    readChildren(services.store.db, row.id),
    findSandbox(services.store.db, row.id),
    missingRows(services.store.db, row.id),
    readFollowStatus(services.store.db, row.id),
  ]);
  const known = statusDocument(row, { figures, size, run, isDoubted });
  const document = {
    ...known,
    traceId: known.runId && (await traceOf(services.store.db, row, known.runId)).traceId,
    image: known.image && { ...known.image, digest: sandbox?.image ?? null },
    git: gitStatus(row, repository, publications),
    delivery: toDeliveryState(publications),
    ...keptSandbox(sandbox),
    follow,
    missing,
    questions: questions.map(questionStatus),
    children,
  };
  // Another installation's run says nothing about this session.
  if (view === undefined || view === "encrypted" || run?.status === "GONE")
    return { ...document, queue: waiting, live: view !== undefined };
  return {
    ...document,
    step: Math.max(document.step, view.step),
    queue: [...waiting, ...(await notStored(services, row.id, view))],
    context: contextOf(document, view),
    waitsUntil: view.waitsUntil ?? document.waitsUntil,
    waitsFor: document.waitsFor ?? (view.waitsUntil === undefined ? null : "time"),
    compactionRounds: Math.max(document.compactionRounds, view.compactionRounds),
    limits: { ...document.limits, deadline: view.deadline ?? null },
    questions: [...document.questions, ...unstored(row.id, view, document.questions)],
    live: true,
  };
}

/** Its stopped sandbox, or why there is none any more; and what no save has. */
const keptSandbox = (
  sandbox: SandboxRow | undefined,
): Pick<SessionStatusDocument, "parked" | "unparked" | "notSaved"> => ({
  parked:
    sandbox?.parkedUntil == null
      ? null
      : { host: sandbox.host, until: sandbox.parkedUntil.toISOString(), bytes: sandbox.parkedBytes },
  unparked: sandbox?.unparked ?? null,
  notSaved: (sandbox?.leftOut ?? []).map(({ path, reason }) => ({ path, reason })),
});

const readFollowStatus = async (db: Services["store"]["db"], id: string) =>
  followStatus(await findFollow(db, id), await listFollowRounds(db, id));

/** Messages that a run has received and that have no row yet. */
async function notStored(
  services: Services,
  id: string,
  { queue }: SessionView,
): Promise<SessionView["queue"]> {
  const ids = queue.map((message) => message.id);
  const known = await knownGuidance(services.store.db, id, ids);
  return queue.filter((message) => !known.has(message.id));
}

function contextOf({ context }: SessionStatusDocument, view: SessionView): SessionStatusDocument["context"] {
  const { used, estimated } = view.context;
  return used > 0 ? { ...context, used, estimated } : context;
}

/** Questions that the run waits for and the rows lack, as after a restore; `answer` has them stored again. */
function unstored(
  session: string,
  view: SessionView,
  stored: SessionStatusDocument["questions"],
): SessionStatusDocument["questions"] {
  return view.questions
    .filter(({ id }) => !stored.some((question) => question.id === id && question.session === session))
    .map((question) => ({ ...question, session, options: null, default: null, expiresAt: null }));
}

/** Limit of the query: a session has a bounded number of delegates. */
const MAX_CHILDREN = 1_000;
const ABOUT_CHARS = 60;

async function readChildren(db: Services["store"]["db"], parent: string): Promise<ChildStatus[]> {
  const rows = (await listSessions(db, { limit: MAX_CHILDREN, parent })).toReversed();
  const figures = await readFigures(
    db,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => {
    const { id, status, step, costUsd, task } = statusDocument(row, { figures: figures.get(row.id) });
    return { id, status, step, costUsd, about: shorten(task.trim().split("\n", 1)[0] ?? "", ABOUT_CHARS) };
  });
}

/** Its own answer, or that it answered in a way that this process has no key for. */
async function askWorkflow(services: Services, id: string): Promise<SessionView | "encrypted" | undefined> {
  try {
    const client = await services.temporal.client();
    return await askWithin(client, QUERY_MS, () => client.workflow.getHandle(id).query(statusQuery));
  } catch (error) {
    if (isKeyMissing(error)) return "encrypted";
    // No worker, or one that is busy replaying: Postgres is nearly as current.
    return undefined;
  }
}

/** @throws ClientError (impossible) if there is no such parent */
export async function listDocuments(services: Services, listing: Listing): Promise<SessionStatusDocument[]> {
  const { db } = services.store;
  const rows = (await unlessTableMissing(() => listed(db, listing))) ?? [];
  const ids = rows.map(({ id }) => id);
  const { sessionSizes } = await import("../../activities/context/context-size.ts");
  const [figures, sizes, closed, follows] = await Promise.all([
    readFigures(db, ids),
    sessionSizes(db, ids),
    closedRuns(services, rows),
    listFollows(db, ids),
  ]);
  const followed = new Map(follows.map((follow) => [follow.sessionId, follow]));
  return rows.map((row) => {
    const { id } = row;
    const document = statusDocument(row, {
      figures: figures.get(id),
      size: sizes.get(id),
      run: closed.get(id),
    });
    return { ...document, follow: followStatus(followed.get(id), []) };
  });
}

async function listed(db: Services["store"]["db"], { parent, ...listing }: Listing): Promise<SessionRow[]> {
  if (parent === undefined) return listSessions(db, listing);
  return listSessions(db, { ...listing, parent: (await findByReference(db, parent)).id });
}

/** Runs that Temporal has closed although their session's row is open: checked for the newest few only, and briefly. */
async function closedRuns(services: Services, rows: readonly SessionRow[]) {
  const open = rows.filter((row) => !sessionHasEnded(row)).slice(0, 20);
  if (open.length === 0) return new Map();
  const descriptions = Promise.all(
    open.map(async ({ id }) => [id, await describeRun(services, id)] as const),
  );
  return new Map(await withTimeout(descriptions, LIST_MS).catch(() => []));
}
