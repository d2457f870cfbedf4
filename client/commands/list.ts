/** `longhaul list`: sessions, newest first. */
import { Option, type Command } from "commander";
import type { Output, Style } from "../console/output.ts";
import { ago, dollars, percent, table } from "../console/format.ts";
import { listDocuments } from "../sessions/session-status.ts";
import { positiveInteger } from "../sessions/flag-values.ts";
import type { SessionStatusDocument } from "../sessions/status-document.ts";
import { withServices } from "../sessions/with-session.ts";

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
    .option("--all", "also delegates, and other people's sessions if LONGHAUL_USER is set")
    .addOption(new Option("--parent <id>", "only the delegates of this session").conflicts("all"))
    .option("--json", "one JSON document");
  return (flags: ListFlags) =>
    withServices(async (services) => {
      const documents = await listDocuments(services, { ...flags, owner: services.user });
      if (flags.json === true) output.json(documents, 2);
      else if (documents.length === 0) output.note(`${noSessions(flags, services.user)}\n`);
      else output.result(`${listText(documents, output.style, output.columns, new Date())}\n`);
    });
}

function noSessions({ status, parent, all }: ListFlags, user: string | undefined): string {
  if (parent !== undefined) return `${parent} has no delegates.`;
  if (status !== undefined) return `There are no sessions with status ${status}. All of them: longhaul list`;
  return user === undefined || all === true
    ? 'There are no sessions yet. Start one: longhaul run "…"'
    : `${user} has no sessions. Start one: longhaul run "…"\nEverybody's: longhaul list --all`;
}

const HEAD = ["ID", "STATUS", "STEP", "CONTEXT", "COST", "STARTED", "TASK"];

export function listText(
  documents: readonly SessionStatusDocument[],
  style: Style,
  columns: number,
  now: Date,
): string {
  const rows = documents.map(({ id, status, step, context, costUsd, createdAt, task }) => [
    id,
    status,
    String(step),
    percent(context.used, context.limit),
    costUsd === null ? "–" : dollars(costUsd),
    ago(new Date(createdAt), now),
    task,
  ]);
  const [head = "", ...lines] = table([HEAD, ...rows], columns);
  return [style("dim", head), ...lines].join("\n");
}
