/** `longhaul list`: sessions, newest first. */
import { Option, type Command } from "commander";
import type { Output, Style } from "../console/output.ts";
import { ago, dollars, oneLine, percent } from "../console/format.ts";
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
    .option("--all", "delegates too, and with LONGHAUL_USER everybody's sessions")
    .addOption(new Option("--parent <id>", "only the delegates of this session").conflicts("all"))
    .option("--json", "one JSON document");
  return (flags: ListFlags) =>
    withServices(async (services) => {
      const documents = await listDocuments(services, { ...flags, owner: services.user });
      if (flags.json === true) output.json(documents, 2);
      else if (documents.length === 0) output.note(`${noSessions(flags)}\n`);
      else output.result(`${listText(documents, output.style, output.columns, new Date())}\n`);
    });
}

function noSessions({ status, parent }: ListFlags): string {
  if (parent !== undefined) return `${parent} has no delegates.`;
  return status === undefined
    ? 'There are no sessions. Start one: longhaul run "…"'
    : `There are no sessions with status ${status}. All of them: longhaul list`;
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
    begun: "STARTED",
    task: "TASK",
  };
  const names = ["id", "status", "step", "context", "cost", "begun"] as const;
  const widths = names.map((name) => Math.max(...[head, ...rows].map((row) => row[name].length)));
  const room = Math.max(20, columns - widths.reduce((sum, width) => sum + width + 2, 0));
  const line = (row: typeof head) =>
    [...names.map((name, index) => row[name].padEnd(widths[index] ?? 0)), oneLine(row.task, room)].join("  ");
  return [style("dim", line(head)), ...rows.map(line)].join("\n");
}
