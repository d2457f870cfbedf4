/** Gathers one session's evidence from Postgres, Temporal, Docker and the model server's log. Reads only. */
import { asc, eq, sql } from "drizzle-orm";
import type { Client } from "@temporalio/client";
import type Dockerode from "dockerode";
import type { Store } from "../../../activities/store/db.ts";
import { readWorkspace } from "../../../activities/store/checkpoints.ts";
import type { SessionEvent } from "../../../activities/store/event.ts";
import { findSandbox } from "../../../activities/store/sandboxes.ts";
import {
  budgetReservations,
  cursors,
  events,
  guidance,
  messages,
  runs,
  sessions,
  spending,
  streamChunks,
  verifications,
  waits,
} from "../../../activities/store/schema/index.ts";
import type { ServedRequest } from "../model-server/wire.ts";
import { isClosed, type SandboxEvidence, type Evidence } from "./evidence.ts";
import { collectHistories } from "./histories.ts";
import { roundsOf, billsOf, callRows } from "../stored.ts";

/** Where a session lives. A test's agent is such a place. */
export interface SessionServices {
  readonly database: { readonly store: Pick<Store, "db"> };
  readonly client: Client;
  readonly docker: Dockerode;
}

export interface CollectOptions {
  /** The strict model server's log. */
  readonly served?: readonly ServedRequest[] | undefined;
  readonly canaries?: readonly string[];
  readonly watched?: readonly SessionEvent[];
  /** Workers that were killed, or ended in the middle of an answer. */
  readonly kills?: number;
  /** How long the run of an ended session may take to close, and its sandbox to be gone, in ms. */
  readonly graceMs?: number;
}

const GRACE_MS = 20_000;
const LABEL = "longhaul.session";

/** @throws Error if there is no such session */
export async function collectEvidence(
  services: SessionServices,
  id: string,
  options: CollectOptions = {},
): Promise<Evidence> {
  const { db } = services.database.store;
  const graceMs = options.graceMs ?? GRACE_MS;
  await closing(services, id, graceMs);
  const [session] = await db.select().from(sessions).where(eq(sessions.id, id));
  const [cursor] = await db.select().from(cursors).where(eq(cursors.sessionId, id));
  if (!session || !cursor) throw new Error(`No session ${id} in Postgres.`);
  const runRows = await db.select().from(runs).where(eq(runs.sessionId, id)).orderBy(asc(runs.ordinal));
  const histories = await collectHistories(
    services.client,
    id,
    runRows.map((run) => run.runId),
  );
  const sandboxes = await sandboxesOf(
    { docker: services.docker, db: services.database.store.db },
    id,
    isClosed({ histories }) ? graceMs : 0,
  );
  return {
    session,
    cursor,
    runs: runRows,
    messages: await db
      .select()
      .from(messages)
      .where(eq(messages.sessionId, id))
      .orderBy(asc(messages.sequence)),
    calls: await callRows({ db }, id),
    rounds: await roundsOf({ db }, id),
    bills: await billsOf({ db }, id),
    waits: await db.select().from(waits).where(eq(waits.sessionId, id)),
    verifications: await db.select().from(verifications).where(eq(verifications.sessionId, id)),
    spent: await spentOf(db, id),
    reserved: await db.$count(budgetReservations, eq(budgetReservations.sessionId, id)),
    parked: await db.select().from(guidance).where(eq(guidance.sessionId, id)).orderBy(asc(guidance.ordinal)),
    events: await db.select().from(events).where(eq(events.sessionId, id)).orderBy(asc(events.seq)),
    chunks: await db.select().from(streamChunks).where(eq(streamChunks.sessionId, id)),
    histories,
    served: options.served,
    sandboxes,
    marks: await marksOf(db, id),
    canaries: options.canaries ?? [],
    watched: options.watched,
    kills: options.kills ?? 0,
  };
}

async function spentOf(db: Store["db"], id: string): Promise<Evidence["spent"]> {
  const rows = await db
    .select({ calls: spending.calls, costUsd: spending.costUsd })
    .from(spending)
    .where(eq(spending.ofSession, sql`md5(${id})`));
  if (rows.length === 0) return undefined;
  const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((all, row) => all + of(row), 0);
  return { calls: sum(({ calls }) => calls), costUsd: sum(({ costUsd }) => costUsd) };
}

/** A session's end is stored just before its run closes: waits for that, as long as the row says that it has ended. */
async function closing({ database, client }: SessionServices, id: string, graceMs: number): Promise<void> {
  const end = Date.now() + graceMs;
  while (Date.now() < end) {
    const [row] = await database.store.db
      .select({ endedAt: sessions.endedAt })
      .from(sessions)
      .where(eq(sessions.id, id));
    if (row?.endedAt == null) return;
    const run = await client.workflow
      .getHandle(id)
      .describe()
      .catch(() => undefined);
    if (run?.status.name !== "RUNNING") return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What is left of the session's sandbox; polls until it is gone or the grace period is over. */
async function sandboxesOf(
  { docker, db }: { readonly docker: Dockerode; readonly db: Store["db"] },
  id: string,
  graceMs: number,
): Promise<SandboxEvidence[]> {
  const filters = { label: [`${LABEL}=${id}`] };
  const end = Date.now() + graceMs;
  const isParked = (await findSandbox(db, id))?.parkedUntil != null;
  for (;;) {
    const containers = await docker.listContainers({ all: true, filters });
    // One that is kept is stopped, and has its volume.
    if (isParked && containers.every(({ State: state }) => state === "exited")) return [];
    const { Volumes: volumes } = await docker.listVolumes({ filters });
    const sandboxes = [
      ...containers.map(({ Names: names, Id: container }): SandboxEvidence => ({
        kind: "container",
        name: names[0] ?? container,
      })),
      ...(volumes ?? []).map(({ Name: name }): SandboxEvidence => ({ kind: "volume", name })),
    ];
    if (sandboxes.length === 0 || Date.now() > end) return sandboxes;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function marksOf(db: Store["db"], id: string): Promise<Map<string, string[]> | undefined> {
  const files = await readWorkspace(db, id);
  if (files === undefined) return undefined;
  const marks = new Map<string, string[]>();
  for (const file of files) {
    if (file.kind !== "file" || !file.path.endsWith(".marks")) continue;
    const lines = Buffer.from(file.bytes).toString().split("\n");
    marks.set(
      file.path,
      lines.filter((line) => line !== ""),
    );
  }
  return marks;
}
