/** `longhaul status ID`: a session's state. */
import type { Command } from "commander";
import { doubtText } from "../console/doubt-text.ts";
import type { Output, Style } from "../console/output.ts";
import { bar, listNames, harmlessLine, present, shellWord } from "../console/format.ts";
import {
  bytes as sizeText,
  dollars,
  duration,
  percent,
  plural,
  tokens,
  usageText,
} from "../../activities/text/format.ts";
import { isOfWorkflow } from "../connect/describe-run.ts";
import { missingText } from "../view/describe-event.ts";
import { verifiedText } from "../view/verified-words.ts";
import { followLines } from "../view/followed-words.ts";
import { readStatus } from "../sessions/session-status.ts";
import type { SessionStatusDocument } from "../sessions/status-document.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";

export function statusCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withSession(reference, async (services, row) => {
      const document = await readStatus(services, row);
      if (flags.json === true) output.json(document, 2);
      else {
        const text = statusText(document, services.uiUrl(row.id), output.style, new Date());
        output.result(`${output.hints(text)}\n`);
      }
    });
}

type Row = [name: string, value: string];

/** A session's state as a few aligned lines. */
export function statusText(
  document: SessionStatusDocument,
  ui: string | undefined,
  style: Style,
  now: Date,
): string {
  const { context, usage } = document;
  const until = document.endedAt === null ? now : new Date(document.endedAt);
  const elapsed = duration(until.getTime() - Date.parse(document.createdAt));
  const rows = present<Row>(
    ["task", harmlessLine(document.task, 160)],
    document.owner !== null && ["owner", harmlessLine(document.owner, 100)],
    turnRow(document),
    ["status", `${style("bold", document.status)}${hintOf(document)}, ${elapsed}`],
    [
      "step",
      `${document.step}${document.maxSteps === null ? "" : ` (a run has at most ${document.maxSteps})`}`,
    ],
    [
      "context",
      `${bar(context.used, context.limit)} ${percent(context.used, context.limit)} of the window · ${tokens(context.used)} of ${tokens(context.limit)} tokens${context.estimated ? " (estimated)" : ""}`,
    ],
    waitRow(document, now),
    document.trouble !== null && ["retries", document.trouble],
    document.limits.deadline !== null && ["deadline", document.limits.deadline],
    ["compacted", plural(document.compactionRounds, "round")],
    ["model", document.model ?? "–"],
    [
      "used",
      `${usageText(usage)}, ${plural(usage.calls, "call")}${document.costUsd === null ? "" : `, ${dollars(document.costUsd)}${estimatedPart(document.costEstimatedUsd)}`}`,
    ],
    document.usageDoubtful && ["counts", doubtText()],
    ...document.missing.map((rows, index): Row => [index === 0 ? "missing" : "", missingText(rows)]),
    document.verified !== null && ["verified", verifiedText(document.verified)],
    ...gitRows(document),
    ...(document.follow === null ? [] : followLines(document.id, document.follow, now)).map(
      (line, index): Row => [index === 0 ? "PR" : "", line],
    ),
    parkedRow(document),
    document.notSaved.length > 0 && [
      "not saved",
      `${listNames(document.notSaved.map(({ path, reason }) => `${harmlessLine(path, 80)} (${reason})`))}`,
    ],
    ...document.questions.map(({ id, kind, text, session }, index): Row => [
      index === 0 ? "asks" : "",
      `${id} ${kind === "ask" ? "" : `(${kind}) `}${harmlessLine(text, 100)}: longhaul answer ${shellWord(session)} ${shellWord(id)}`,
    ]),
    ...familyRows(document),
    ["queue", queueText(document)],
    ...document.queue.map(({ text }, index): Row => ["", `${index + 1}. ${harmlessLine(text, 100)}`]),
    Boolean(document.result) && ["result", harmlessLine(document.result ?? "", 400)],
    errorRow(document.error),
    ui !== undefined && ["web", ui],
  );
  const title = style("bold", document.id);
  return [title, ...rows.map(([name, value]) => `  ${style("dim", name.padEnd(10))}${value}`)].join("\n");
}

/** Until when it waits for what. A person's question has rows of its own. */
function waitRow({ id, waitsUntil, waitsFor, waitReason }: SessionStatusDocument, now: Date): Row | false {
  const left =
    waitsUntil === null ? "" : ` (in ${duration(Math.max(0, Date.parse(waitsUntil) - now.getTime()))})`;
  if (waitReason !== null) {
    const until = waitsUntil === null ? "" : `until ${waitsUntil}${left} `;
    const target = waitsFor === "process" ? "for a command in the background " : "";
    return [
      "waits",
      `${until}${target}(${harmlessLine(waitReason, 200)}); a message ends the wait, and so does longhaul wake ${shellWord(id)}`,
    ];
  }
  return (
    waitsUntil !== null && [
      "waits",
      `the model's provider answers again at ${waitsUntil}${left}; a message or an interrupt asks at once`,
    ]
  );
}

/** Where its stopped sandbox is, or why there is none any more. */
function parkedRow({ parked, unparked }: SessionStatusDocument): Row | false {
  if (parked === null)
    return (
      unparked !== null && [
        "parked",
        `no more: its stopped sandbox was removed ${harmlessLine(unparked, 100)}`,
      ]
    );
  const { host, bytes, until } = parked;
  const size = bytes === null ? "" : `, ${sizeText(bytes)}`;
  return [
    "parked",
    `on ${harmlessLine(host, 60)}${size}, until ${until.slice(0, 10)} ${until.slice(11, 16)} UTC`,
  ];
}

/** Whose turn it is when workers are scarce, if that was configured. */
function turnRow({ priority, tenant }: SessionStatusDocument): Row | false {
  const facts = present(priority !== null && `priority ${priority}`, tenant !== null && `tenant ${tenant}`);
  return facts.length > 0 && ["turn", facts.join(", ")];
}

/** Omitted below $0.0001, which is noise. */
function estimatedPart(usd: number): string {
  return usd < 0.000_1 ? "" : ` (${dollars(usd)} of it estimated: requests without a bill)`;
}

const MAX_REMARK_CHARS = 500;

function gitRows({ id, git, delivery }: SessionStatusDocument): Row[] {
  if (git === null) return [];
  const pushed = git.pushed === null ? "not pushed" : `pushed at ${git.pushed.slice(0, 12)}`;
  const refused =
    delivery === "refused"
      ? ` · the last delivery was refused: try again with longhaul push ${shellWord(id)}`
      : "";
  return present<Row>(
    ["git", `${git.branch} of ${git.url}, ${pushed}${refused}`],
    git.pullRequest !== null && ["", git.pullRequest],
    ...git.remarks.map((remark): Row => ["", harmlessLine(remark, MAX_REMARK_CHARS)]),
  );
}

function familyRows({ parent, children }: SessionStatusDocument): Row[] {
  return present<Row>(
    parent !== null && ["parent", `${parent.id}, its call ${parent.call}`],
    ...children.map(({ id, status, step, costUsd, about }, index): Row => {
      const cost = costUsd === null ? "" : `, ${dollars(costUsd)}`;
      return [index === 0 ? "delegates" : "", `${id} ${status}, step ${step}${cost}: ${about}`];
    }),
  );
}

function queueText({ id, queue, endedAt }: SessionStatusDocument): string {
  if (queue.length === 0) return "empty";
  const waiting = `${plural(queue.length, "message")} waiting`;
  return endedAt === null ? waiting : `${waiting} for its next run (longhaul say ${shellWord(id)} "go on")`;
}

function hintOf(document: SessionStatusDocument): string {
  if (document.endedAt !== null) return "";
  if (document.workflowStatus === null) return " (Temporal does not answer: this is what Postgres knows)";
  if (document.workflowStatus === "GONE")
    return document.runId === null
      ? " (not started yet)"
      : ` (Temporal no longer has its run; resume it with: longhaul say ${shellWord(document.id)} "go on")`;
  // A run that was ended from outside could not store its end.
  if (document.workflowStatus !== "RUNNING") return " (its run was ended in Temporal)";
  if (document.live) return "";
  if (isOfWorkflow(document.trouble)) return " (no worker can continue it: see retries)";
  return document.build === null
    ? " (waiting for a worker: start one with `longhaul worker`)"
    : ` (waits for a worker of build ${document.build}; \`longhaul doctor\` says how to move it to another)`;
}

function errorRow(error: unknown): Row | false {
  if (typeof error !== "object" || error === null) return false;
  const { type, message } = error as { type?: string; message?: string };
  // Whole, as it was stored: its end says what to do.
  return ["error", harmlessLine(`${type ?? "failed"}: ${message ?? ""}`, 1_100)];
}
