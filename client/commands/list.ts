/** `longhaul list`: sessions, newest first. */
import { Option, type Command } from "commander";
import type { Output, Style } from "../console/output.ts";
import { ago, harmlessLine, table } from "../console/format.ts";
import { dollars, duration, percent } from "../../activities/text/format.ts";
import { followMark } from "../view/followed-words.ts";
import { listDocuments } from "../sessions/session-status.ts";
import { positiveInteger } from "../sessions/flag-values.ts";
import type { SessionStatusDocument } from "../sessions/status-document.ts";
import { verifiedMark } from "../view/verified-words.ts";
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
      else {
        const hasOwners = flags.all === true || services.user === undefined;
        output.result(`${listText(documents, { ...output, hasOwners, now: new Date() })}\n`);
      }
    });
}

function noSessions({ status, parent, all }: ListFlags, user: string | undefined): string {
  if (parent !== undefined) return `${parent} has no delegates.`;
  if (status !== undefined) return `There are no sessions with status ${status}. All of them: longhaul list`;
  return user === undefined || all === true
    ? 'There are no sessions yet. Start one: longhaul run "…"'
    : `${user} has no sessions. Start one: longhaul run "…"\nEverybody's: longhaul list --all`;
}

const MAX_OWNER_CHARS = 20;

const WAIT_NAMES = {
  person: "you",
  budget: "you",
  time: "a time",
  process: "a command",
  forge: "the forge",
} as const;

interface Column {
  readonly head: string;
  readonly cell: (document: SessionStatusDocument) => string;
  /** Which columns a narrow terminal goes without, in this order; the others always stay. */
  readonly spare?: number;
}

interface ListLook extends Pick<Output, "columns" | "isTerminal"> {
  readonly style: Style;
  /** Whether the list may contain other people's sessions. */
  readonly hasOwners: boolean;
  readonly now: Date;
}

export function listText(
  documents: readonly SessionStatusDocument[],
  { hasOwners, style, columns, isTerminal, now }: ListLook,
): string {
  const owner: Column = {
    head: "OWNER",
    cell: ({ owner: name }) => (name === null ? "–" : harmlessLine(name, MAX_OWNER_CHARS)),
  };
  const all: readonly Column[] = [
    { head: "ID", cell: ({ id }) => id },
    {
      head: "STATUS",
      cell: ({ status, waitsUntil, waitsFor, verified, follow }) =>
        waitsUntil === null
          ? `${status}${waitsFor === null ? "" : ` for ${WAIT_NAMES[waitsFor]}`}${verified === null ? "" : ` ${verifiedMark(verified)}`}${followMark(follow?.state ?? null)}`
          : `${status === "waiting" ? "waits" : `${status}, waits`} ${duration(Math.max(0, Date.parse(waitsUntil) - now.getTime()))}`,
    },
    ...(hasOwners && documents.some(({ owner: name }) => name !== null) ? [owner] : []),
    { head: "STEP", spare: 2, cell: ({ step }) => String(step) },
    { head: "CONTEXT", spare: 1, cell: ({ context }) => percent(context.used, context.limit) },
    { head: "COST", spare: 3, cell: ({ costUsd }) => (costUsd === null ? "–" : dollars(costUsd)) },
    { head: "STARTED", spare: 4, cell: ({ createdAt }) => ago(new Date(createdAt), now) },
    { head: "TASK", cell: ({ task }) => task },
  ];
  const rows = (spared: number) => {
    const shownColumns = all.filter(({ spare = Infinity }) => spare > spared);
    const cells = documents.map((document) => shownColumns.map(({ cell }) => cell(document)));
    return table([shownColumns.map((column) => column.head), ...cells], columns);
  };
  const fits = (spared: number) => !isTerminal || rows(spared).every((line) => line.length <= columns);
  const [head = "", ...lines] = rows([0, 1, 2, 3].find(fits) ?? 4);
  return [style("dim", head), ...lines].join("\n");
}
