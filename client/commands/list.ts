/** `longhaul list`: sessions, newest first. */
import { Option, type Command } from "commander";
import { listSessions, readFigures, type SessionRow } from "../../activities/store/reading.ts";
import type { Services } from "../connect/connection.ts";
import { withTimeout } from "../../worker/connect/with-timeout.ts";
import { describeRun } from "../connect/describe-run.ts";
import type { Output, Style } from "../console/output.ts";
import { ago, dollars, oneLine, percent } from "../console/format.ts";
import { findByReference } from "../sessions/find-by-reference.ts";
import { positiveInteger } from "../sessions/run-options.ts";
import { statusDocument, type SessionStatusDocument } from "../sessions/status-document.ts";
import { hasEnded } from "../sessions/start-session.ts";
import { unlessTableMissing, withServices } from "../sessions/with-session.ts";

interface ListFlags {
  readonly limit: number;
  readonly status?: string;
  readonly all?: boolean;
  readonly parent?: string;
  readonly json?: boolean;
}

const statuses = ["active", "waiting", "completed", "failed", "cancelled", "max_steps"];

export function listCommand(command: Command, output: Output) {
  command
    .option("--limit <n>", "show at most this many", positiveInteger, 50)
    .addOption(new Option("--status <status>", "show only sessions with this status").choices(statuses))
    .option("--all", "delegates too, which are left out otherwise")
    .addOption(new Option("--parent <id>", "only the delegates of this session").conflicts("all"))
    .option("--json", "one JSON document");
  return (flags: ListFlags) =>
    withServices(async (services) => {
      const { db } = services.store;
      const rows = (await unlessTableMissing(() => listed(db, flags))) ?? [];
      const ids = rows.map(({ id }) => id);
      const { sessionSizes } = await import("../../activities/context/session-sizes.ts");
      const [figures, sizes, closed] = await Promise.all([
        readFigures(db, ids),
        sessionSizes(db, ids),
        closedRuns(services, rows),
      ]);
      const documents = rows.map((row) =>
        statusDocument(row, figures.get(row.id), sizes.get(row.id), closed.get(row.id)),
      );
      if (flags.json === true) output.json(documents, 2);
      else if (documents.length === 0) output.note(`${noSessions(flags)}\n`);
      else output.result(`${listText(documents, output.style, output.columns, new Date())}\n`);
    });
}

async function listed(db: Services["store"]["db"], { parent, ...flags }: ListFlags): Promise<SessionRow[]> {
  if (parent === undefined) return listSessions(db, flags);
  return listSessions(db, { ...flags, parent: (await findByReference(db, parent)).id });
}

function noSessions({ status, parent }: ListFlags): string {
  if (parent !== undefined) return `${parent} has no delegates.`;
  return status === undefined
    ? 'There are no sessions. Start one: longhaul run "…"'
    : `There are no sessions with status ${status}. All of them: longhaul list`;
}

/** Runs that Temporal has as closed though their session's row does not: asked for the newest few only, and briefly. */
async function closedRuns(services: Services, rows: readonly SessionRow[]) {
  const open = rows.filter((row) => !hasEnded(row)).slice(0, 20);
  if (open.length === 0) return new Map();
  const asked = Promise.all(
    open.map(async ({ id }) => [id, await describeRun(services.temporal, id)] as const),
  );
  return new Map(await withTimeout(asked, 3_000).catch(() => []));
}

export function listText(
  documents: readonly SessionStatusDocument[],
  style: Style,
  columns: number,
  now: Date,
): string {
  const rows = documents.map((document) => ({
    id: document.id,
    status: document.status,
    step: String(document.step),
    context: percent(document.context.used, document.context.limit),
    cost: document.costUsd === null ? "–" : dollars(document.costUsd),
    begun: ago(new Date(document.createdAt), now),
    task: document.task,
  }));
  const head = {
    id: "ID",
    status: "STATUS",
    step: "STEP",
    context: "CONTEXT",
    cost: "COST",
    begun: "BEGUN",
    task: "TASK",
  };
  const names = ["id", "status", "step", "context", "cost", "begun"] as const;
  const widths = names.map((name) => Math.max(...[head, ...rows].map((row) => row[name].length)));
  const room = Math.max(20, columns - widths.reduce((sum, width) => sum + width + 2, 0));
  const line = (row: typeof head) =>
    [...names.map((name, index) => row[name].padEnd(widths[index] ?? 0)), oneLine(row.task, room)].join("  ");
  return [style("dim", line(head)), ...rows.map(line)].join("\n");
}
