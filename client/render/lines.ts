/** Single events and calls as lines. */
import { listLeftOut } from "../../activities/contract/delivery.ts";
import type { EventData, SessionEvent } from "../../activities/store/event.ts";
import { listNames, harmlessLine, present, lastLines } from "../console/format.ts";
import { dollars, duration, plural, tokens, usageText } from "../../activities/text/format.ts";
import type { Style, Look } from "../console/output.ts";

export function startLine(
  event: SessionEvent,
  data: EventData["session:started"],
  style: Style,
  columns: number,
): string[] {
  const task = harmlessLine(data.task, columns * 2);
  if (data.resetTo !== undefined)
    return [
      style("bold", `\n▶ back to before step ${data.resetTo}: ${event.sessionId}, epoch ${event.epoch}`),
    ];
  if (data.continued) return [style("bold", `\n▶ resumed: ${event.sessionId}`)];
  return [`${style("bold", "▶ task:")} ${task}`, style("dim", `  model ${data.model}`)];
}

export function compressedLine(data: EventData["context:compressed"], style: Style): string {
  if (data.status === "undone") {
    const sizes = `${tokens(data.tokensBefore)} → ${tokens(data.tokensAfter)} tokens`;
    return style(
      "cyan",
      `◇ round ${data.round} undone: ${plural(data.messages, "message")} in view again, ${sizes}`,
    );
  }
  if (data.status !== "compacted") {
    const reason = data.reason === null ? "" : `: ${harmlessLine(data.reason, 160)}`;
    return style("yellow", `! context not compacted${reason}; history is unchanged`);
  }
  const sizes = `${tokens(data.tokensBefore)} → ${tokens(data.tokensAfter)} tokens`;
  const how = `${plural(data.messages, "message")} into a summary (${data.strategy}, ${data.trigger})`;
  return style("cyan", `◆ context compacted, round ${data.round}: ${sizes}, ${how}`);
}

/** What a restored database lacks, for people. */
export function missingText({ from, to, calls }: EventData["record:missing"]): string {
  const steps = from === to ? `step ${from} is` : `steps ${from} to ${to} are`;
  const what =
    calls === undefined ? steps : `${plural(calls, "result")} of step ${from} ${calls === 1 ? "is" : "are"}`;
  return `Postgres was restored from an older copy: ${what} missing from the record, with the messages and costs; what was done then may be in the files`;
}

const NAMES_CHARS = 200;

export function changedTools({ server, added, removed }: EventData["mcp:changed"]): string {
  const named = (sign: string, names: readonly string[]) => names.map((name) => `${sign}${name}`);
  const names = harmlessLine([...named("+", added), ...named("−", removed)].join(" "), NAMES_CHARS);
  return `${harmlessLine(server, 40)} changed its tools${names === "" ? "" : `: ${names}`}`;
}

export function queuedLine(data: EventData["message:queued"], style: Style, columns: number): string {
  const place = data.position > 1 ? ` (position ${data.position})` : "";
  return style("magenta", `✉ waits for the next step${place}: ${harmlessLine(data.excerpt, columns)}`);
}

/**
 * Who sent the messages that became one, in their order, so that the names fit its labels. `you`: the owner, or nobody who
 * is known.
 * @param senders by message id; a watcher that came later does not know them all
 */
export function sendersText(
  { ids, by = [] }: EventData["message:dequeued"],
  senders: ReadonlyMap<string, string | undefined>,
  owner: string | undefined,
): string {
  // A long message is in pieces: a, a#2, a#3.
  const known = ids.map((id) => (senders.has(id) ? id : id.replace(/#\d+$/, "")));
  const names = known.every((id) => senders.has(id)) ? known.map((id) => senders.get(id)) : by;
  const people = [...new Set(names)];
  if (people.every((name) => name === undefined || name === owner)) return "you";
  return harmlessLine((people.length === 1 ? people : names).map((name) => name ?? "you").join(", "), 80);
}

export function sandboxLine(
  { workspace, network, allow, gaps }: EventData["sandbox:created"],
  style: Style,
): string {
  const kept = workspace === "restored" ? ", files restored" : `, ${workspace}`;
  const files = workspace === "empty" ? "" : kept;
  const made = style("dim", `  sandbox created${files}`);
  return present(
    made,
    allow !== undefined && style("dim", `  sandbox.allow opens ${listNames(allow)}`),
    doubtLine(network, gaps, style),
  ).join("\n");
}

function doubtLine(
  network: EventData["sandbox:created"]["network"],
  gaps: readonly string[] | undefined,
  style: Style,
): string | undefined {
  if (gaps !== undefined)
    return style(
      "yellow",
      `! the sandbox is not isolated as configured: ${harmlessLine(gaps.join("; "), 200)}`,
    );
  if (network?.why === undefined) return undefined;
  return style("yellow", `! the sandbox can reach private addresses: ${harmlessLine(network.why, 200)}`);
}

export function refusedLine({ host, port, reason, count, allow }: EventData["egress:denied"]): string {
  const times = count > 1 ? `, ${count} times` : "";
  const byAddress =
    reason === "blocked-private-address" ? "; sandbox.allow opens such an address, in a new session" : "";
  const fix = allow === undefined ? byAddress : `; to allow it: ${harmlessLine(allow, 400)}`;
  return `! network: ${harmlessLine(host, 253)}:${port} was refused (${harmlessLine(reason, 60)}${times})${fix}`;
}

const endings: Record<string, { readonly text: string; readonly look: "green" | "red" | "yellow" }> = {
  completed: { text: "✓ completed", look: "green" },
  failed: { text: "✗ failed", look: "red" },
  cancelled: { text: "■ cancelled", look: "yellow" },
  max_steps: { text: "■ stopped: step limit reached", look: "yellow" },
};
const LIMITS = {
  cost: { text: "■ stopped: cost limit reached (limits.maxCostUsd)", look: "yellow" },
  deadline: { text: "■ stopped: the deadline has passed (limits.deadline)", look: "yellow" },
} as const;

export function endLines(data: EventData["session:ended"], style: Style): string[] {
  const { text, look } = (data.limit === undefined ? endings[data.status] : LIMITS[data.limit]) ?? {
    text: data.status,
    look: "yellow" as const,
  };
  const { usage } = data;
  const facts = present(
    plural(data.steps, "step"),
    data.rounds > 0 && plural(data.rounds, "compaction round"),
    usageText(usage),
    data.costUsd !== null && dollars(data.costUsd),
    duration(data.durationMs),
  );
  return present(
    `\n${style(look, text)}  ${style("dim", facts.join(" · "))}`,
    data.reason !== null && style(look, `  ${harmlessLine(data.reason, 1_000)}`),
  );
}

export const delegateLines = {
  started: ({ childId, about }: EventData["delegate:started"], style: Style): string =>
    `${style("cyan", "⇢ delegated:")} ${harmlessLine(about, 120)} ${style("dim", `(${childId})`)}`,
  ended: (
    { childId, status, steps, costUsd, applied }: EventData["delegate:ended"],
    style: Style,
  ): string => {
    const parts = present(
      status,
      plural(steps, "step"),
      costUsd !== null && dollars(costUsd),
      applied.length > 0 && `${plural(applied.length, "file")} applied`,
    );
    return `${style("cyan", `⇠ ${childId}:`)} ${parts.join(", ")}`;
  },
  /** Undefined if all changes were merged. */
  notApplied: ({ notApplied }: EventData["delegate:ended"]): string | undefined =>
    notApplied.length === 0
      ? undefined
      : `! not applied: ${harmlessLine(notApplied.map(({ path, reason }) => `${path} (${reason})`).join(", "), 500)}`,
};

const SHOWN_COMMIT = 12;
const MAX_LEFT_OUT_CHARS = 400;

export const gitLines = {
  fetched: ({ url, ref, commit, branch }: EventData["git:fetched"], style: Style): string =>
    style(
      "dim",
      `  ${harmlessLine(url, 200)} at ${harmlessLine(ref, 100)} (${commit.slice(0, SHOWN_COMMIT)}), branch ${branch}`,
    ),
  pushed: ({ branch, commit, commits, forced, from }: EventData["git:pushed"], style: Style): string => {
    const over = forced === true ? ", over commits that an abandoned attempt had pushed" : "";
    const branched = from === undefined ? "" : `, from the session's own branch ${harmlessLine(from, 100)}`;
    return style(
      "green",
      `⇡ ${plural(commits, "commit")} on ${branch} (${commit.slice(0, SHOWN_COMMIT)})${branched}${over}`,
    );
  },
  refused: ({ branch, reason }: EventData["git:refused"]): string =>
    `! ${branch} was not delivered: ${harmlessLine(reason, 500)}`,
  pullRequest: ({ url, created, state }: EventData["git:pull-request"], style: Style): string => {
    const changed = created ? "opened" : "updated";
    const how = state === undefined ? changed : `is ${state}, and stays so`;
    return style("green", `⇡ pull request ${how}: ${harmlessLine(url, 300)}`);
  },
  leftOut: ({ count, files }: EventData["git:left-out"]): string =>
    `! not delivered: ${harmlessLine(listLeftOut(files, count, MAX_LEFT_OUT_CHARS), 2 * MAX_LEFT_OUT_CHARS)}`,
};

const MAX_COMMAND_COLUMNS = 120;
/** Lines of a failed command's output that are shown. */
const MAX_LINES = 10;

export const setupLines = {
  started: ({ commands }: EventData["setup:started"], style: Style): string =>
    style(
      "dim",
      `setting up: ${commands.map((command) => harmlessLine(command, MAX_COMMAND_COLUMNS)).join(" · ")}`,
    ),

  built: ({ kept, durationMs }: EventData["setup:built"], style: Style): string =>
    style(
      "dim",
      kept === "taken"
        ? "the Dockerfile's image already exists"
        : `built the Dockerfile's image in ${duration(durationMs)}`,
    ),

  ended(data: EventData["setup:ended"], style: Style): string {
    const { status, durationMs, output, command = "", how = "" } = data;
    if (status === "done") {
      const before = data.kept === "taken" ? ", from the kept set-up" : "";
      const notKept = data.notKept === undefined ? "" : ` (not kept: ${harmlessLine(data.notKept, 200)})`;
      return style("dim", `set up in ${duration(durationMs)}${before}${notKept}`);
    }
    const last = output
      .split("\n")
      .slice(-MAX_LINES)
      .map((line) => `  ${harmlessLine(line, MAX_COMMAND_COLUMNS)}`);
    const line = `! set-up failed at ${harmlessLine(command, MAX_COMMAND_COLUMNS)} (${harmlessLine(how, 200)})`;
    return style("yellow", [line, ...last].join("\n"));
  },
};

const EXCERPT_LINES = 5;

const marks: Record<string, { readonly mark: string; readonly look: Look }> = {
  completed: { mark: "✓", look: "green" },
  error: { mark: "✗", look: "red" },
  interrupted: { mark: "■", look: "yellow" },
  unknown: { mark: "?", look: "yellow" },
};

/** One tool call as a line, and its last output if it failed. */
export function resultLines(
  data: EventData["llm:tool-result"],
  about: string,
  style: Style,
  columns: number,
): string[] {
  const failedCommand = data.exitCode !== null && data.exitCode !== 0;
  const kind = failedCommand && data.outcome === "completed" ? "error" : data.outcome;
  const { mark, look } = marks[kind] ?? { mark: "?", look: "yellow" };
  const facts = present<string>(
    failedCommand && `exit ${data.exitCode}`,
    (data.outcome === "interrupted" || data.outcome === "unknown") && data.outcome,
    duration(data.durationMs),
    data.truncated && "output cut",
  ).join(" · ");
  const what = callText(data.name, about, columns - facts.length - 6, style);
  const first = `  ${style(look, mark)} ${what}  ${style("dim", facts)}`;
  if (kind === "completed") return [first];
  // The first line already shows the exit code.
  const ending = data.excerpt.replace(/\[exit code \d+\]\s*$/, "");
  const excerpt = lastLines(ending, EXCERPT_LINES, columns - 6);
  return [first, ...excerpt.map((text) => style("dim", `    │ ${text}`))];
}

/** @param ms how long the call has been running */
export function waitingLine(
  { name, about }: { readonly name: string; readonly about: string },
  ms: number,
  style: Style,
  columns: number,
): string {
  const since = `running for ${duration(ms)}`;
  return `  ${style("cyan", "…")} ${callText(name, about, columns - since.length - 6, style)}  ${style("dim", since)}`;
}

function callText(name: string, about: string, room: number, style: Style): string {
  const short = harmlessLine(about, Math.max(10, room - name.length - 1));
  return short === "" ? style("bold", name) : `${style("bold", name)} ${short}`;
}
