/**
 * Commands in the background of a session's sandbox: their ends are seen where the supervisor is, stored with the call's row, and told
 * to the model once, at the next step boundary, unless a tool's result has told it before.
 */
import { log } from "@temporalio/activity";
import type { CheckCommandsInput, CheckedCommands } from "../contract/activities.ts";
import { reasonOf } from "../contract/errors.ts";
import { superseded } from "../contract/failures.ts";
import { inScope } from "../runtime/activity-scope.ts";
import { enterSession } from "../runtime/enter-session.ts";
import type { AgentDeps, WorkspaceDeps } from "../runtime/deps.ts";
import type { CommandState, Sandbox } from "../sandbox/sandbox.ts";
import {
  markEnded,
  takeEnded,
  untoldCommands,
  type BackgroundCommand,
  type CommandEnd,
} from "../store/background.ts";
import type { Queryable } from "../store/db.ts";
import { appendEvents } from "../store/events.ts";
import { addNoticeOnce, takeNotice } from "../store/sandboxes.ts";
import { lockRunAlone } from "../store/session-locks.ts";
import type { Session } from "../store/sessions.ts";
import { findAskedCall } from "../store/tool-calls.ts";
import { readOutputPage } from "../tools/bash-output.ts";
import { oneLine } from "../tools/paths.ts";
import { cutTail } from "../text/cut.ts";
import { duration } from "../text/format.ts";
import { andMore, takeFirst } from "../text/lists.ts";
import { terminalText } from "../sandbox/terminal-text.ts";
import type { SessionSandboxes } from "./session-sandbox.ts";

type CommandDeps = WorkspaceDeps & Pick<AgentDeps, "sanitizer">;

/** The end of an output that is stored with how a command ended: some lines of a test runner. */
const LAST_BYTES = 1_200;
const LAST_CHARS = 500;
/** Of how many commands that ended since the last look. The others are told by their ids. */
const MAX_READ = 8;
const ABOUT_CHARS = 60;

/**
 * Stores how commands ended since the last look, each once, with an event. Never rejects but for a run that lost the session: what is
 * not seen now is seen by the next look.
 * @returns the commands that still run, as far as is known
 * @throws Superseded (fatal)
 */
export async function lookAtCommands(
  deps: CommandDeps,
  session: Session,
  step: number,
  sandbox: Sandbox | undefined,
): Promise<BackgroundCommand[]> {
  const known = await untoldCommands(deps.store.db, session.id);
  const running = known.filter(({ end }) => end === undefined);
  if (running.length === 0 || sandbox === undefined) return running;
  try {
    const states = new Map((await sandbox.list()).map((state) => [state.id, state]));
    const ended = running.filter(({ id }) => states.get(id)?.kind !== "running");
    for (const [position, command] of ended.entries()) {
      const end = await endOf(deps, sandbox, states.get(command.id), position < MAX_READ);
      await store(deps, session, { step, command, end });
    }
    return running.filter((command) => !ended.includes(command));
  } catch (error) {
    if (isSuperseded(error)) throw error;
    log.warn("the background commands of a session could not be looked at", { reason: reasonOf(error) });
    return running;
  }
}

const isSuperseded = (error: unknown): boolean =>
  error instanceof Error && "type" in error && error.type === "Superseded";

/** How long a step waits for a sandbox that does not answer. Chosen: a hundred times what a look takes. */
const PATIENCE_MS = 2_000;

/** As `lookAtCommands`, if this worker has the session's sandbox open; it never rejects, and never holds a step up for long. */
export const lookWhereOpen =
  (deps: CommandDeps, sandboxes: Pick<SessionSandboxes, "opened">) =>
  async (session: Session, step: number): Promise<void> => {
    if (!session.hasCommands) return;
    const lookNow = async () =>
      void (await lookAtCommands(deps, session, step, await sandboxes.opened(session)));
    const late = new Promise<void>((resolve) => void setTimeout(resolve, PATIENCE_MS).unref());
    await Promise.race([lookNow().catch(() => undefined), late]);
  };

/** Without a state it was lost with an earlier sandbox. */
async function endOf(
  deps: CommandDeps,
  sandbox: Sandbox,
  state: CommandState | undefined,
  isRead: boolean,
): Promise<CommandEnd> {
  if (state === undefined || state.kind === "lost") return { how: "gone" };
  const lines = isRead ? await lastLines(deps, sandbox, state) : "";
  const printed = lines === "" ? {} : { lines };
  switch (state.kind) {
    case "exited":
      return { how: "exited", exitCode: state.exitCode, ms: state.durationMs, ...printed };
    case "killed":
      return { how: `was ended by ${state.signal} (${state.by})`, ms: state.durationMs, ...printed };
    case "refused":
      return { how: `was not started: ${oneLine(deps.sanitizer.clean(state.reason), 200)}` };
    case "running":
      return { how: "runs" };
  }
}

async function lastLines({ sanitizer }: CommandDeps, sandbox: Sandbox, state: CommandState): Promise<string> {
  const { id, outKept } = state;
  if (outKept === 0) return "";
  const maskWindow = (text: string, from: number, to: number) => sanitizer.maskWindow(text, from, to);
  const range = { from: Math.max(0, outKept - LAST_BYTES), to: outKept };
  const page = await readOutputPage(sandbox, id, range, { maskWindow });
  const text = sanitizer.clean(terminalText(page.text).trimEnd());
  return text.length <= LAST_CHARS ? text : cutTail(text, LAST_CHARS);
}

async function store(
  { store: { db } }: CommandDeps,
  session: Session,
  {
    step,
    command,
    end,
  }: { readonly step: number; readonly command: BackgroundCommand; readonly end: CommandEnd },
): Promise<void> {
  const about = await aboutOf(db, session.id, command);
  await db.transaction(async (tx) => {
    if (!(await lockRunAlone(tx, session.id, session.runId ?? "")))
      throw superseded("the ends of its commands are told by that one");
    if (!(await markEnded(tx, session.id, command, end))) return;
    const { exitCode = null, ms = null, lines = "" } = end;
    const data = { id: command.id, about, how: endWords(end), exitCode, ms, lines };
    await appendEvents(tx, session.id, session.epoch, [{ type: "process:ended", step, data }]);
  });
}

async function aboutOf(db: Queryable, sessionId: string, at: BackgroundCommand): Promise<string> {
  const askedCall = await findAskedCall(db, sessionId, at).catch(() => undefined);
  const { command } = (askedCall?.call.input ?? {}) as { readonly command?: unknown };
  return typeof command === "string" ? oneLine(command, ABOUT_CHARS) : "";
}

/**
 * Takes what the model must be told of its sandbox, in the transaction that stores it for the model: the pending notice, and the ends of
 * commands. @returns undefined if there is nothing
 */
export async function takeNotices(tx: Queryable, sessionId: string): Promise<string | undefined> {
  const pending = await takeNotice(tx, sessionId);
  const ended: EndedCommand[] = [];
  // One after the other: a transaction has one connection.
  for (const command of await takeEnded(tx, sessionId))
    ended.push({ id: command.id, about: await aboutOf(tx, sessionId, command), end: command.end });
  const notices = [pending ?? "", ended.length === 0 ? "" : endedNote(ended)];
  return notices.filter((notice) => notice !== "").join("\n") || undefined;
}

/** As `takeNotices`, of these commands alone: a sentence for each that ended, with the end of its output. */
export async function takeEndSentences(
  tx: Queryable,
  sessionId: string,
  ids: readonly string[],
): Promise<string[]> {
  const sentences: string[] = [];
  for (const { id, end, ...place } of await takeEnded(tx, sessionId, ids))
    sentences.push(
      endedSentence({ id, about: await aboutOf(tx, sessionId, { id, end, ...place }), end }, true),
    );
  return sentences;
}

/** Leaves the note that commands run, for the next step. Idempotent while the note waits. */
async function noteRunning(
  { store: { db } }: CommandDeps,
  session: Session,
  running: readonly BackgroundCommand[],
): Promise<void> {
  const all: NotedCommand[] = [];
  for (const command of running) all.push({ id: command.id, about: await aboutOf(db, session.id, command) });
  await addNoticeOnce(db, session.id, runningNote(all));
}

/**
 * Looks at the commands in the background when the model has given its last answer.
 *
 * Idempotency key: the calls' rows, and the pending notice's text. Side effects: rows, events, a notice for the model. Heartbeat: by
 * timer. Retry class: Postgres; a sandbox that does not answer is not waited for. Cancel: none needed, it is short.
 */
export function createCheckCommands(deps: AgentDeps, sandboxes: SessionSandboxes) {
  return ({ step, round }: CheckCommandsInput): Promise<CheckedCommands> =>
    inScope(deps, async (scope) => {
      const session = await enterSession(deps, scope, { step: step + 1, phase: "model", round });
      const sandbox = await sandboxes.find(session);
      if (sandbox === undefined) return { isTold: false };
      const running = await lookAtCommands(deps, session, step, sandbox);
      if (running.length > 0) await noteRunning(deps, session, running);
      return { isTold: (await untoldCommands(deps.store.db, session.id)).length > 0 };
    });
}

interface NotedCommand {
  /** `s12c0` */
  readonly id: string;
  /** Its first line, at most 60 characters. */
  readonly about: string;
}

interface EndedCommand extends NotedCommand {
  readonly end: CommandEnd;
}

/** How many are told with the end of their output, and how many by their ids. Chosen: a note of some 4,000 characters at most. */
const MAX_QUOTED = 8;
const MAX_NAMED = 40;

/** `s3c0 (npm test)` */
const shownCommand = ({ id, about }: NotedCommand): string => (about === "" ? id : `${id} (${about})`);

/** In words: `ended with exit code 1 after 4 min`. */
function endWords({ how, exitCode, ms }: CommandEnd): string {
  const after = ms === undefined ? "" : ` after ${duration(ms)}`;
  if (how === "exited") return `ended with exit code ${exitCode ?? 0}${after}`;
  if (how === "gone") return "is gone with its sandbox, and how far it came is not known";
  return `${how}${after}`;
}

function endedSentence(command: EndedCommand, isQuoted: boolean): string {
  const { id, end } = command;
  const { lines: printed = "" } = end;
  const sentence = `${shownCommand(command)} ${endWords(end)}.`;
  return printed === "" || !isQuoted
    ? sentence
    : `${sentence} Last lines:\n${printed}\n(bash_output id="${id}" has all)`;
}

/** One note for all ends, bounded however many there are. */
export function endedNote(ended: readonly EndedCommand[]): string {
  const { shown, more } = takeFirst(ended, MAX_NAMED);
  const lines = shown.map((command, position) => endedSentence(command, position < MAX_QUOTED));
  return `[Commands in the background:\n${lines.join("\n")}${more > 0 ? `\n${andMore(more).trim()}` : ""}]`;
}

/** Once, when the model gives its final answer while commands run. */
export function runningNote(running: readonly NotedCommand[]): string {
  const { shown, more } = takeFirst(running, MAX_NAMED);
  const one = running.length === 1;
  return `[${shown.map(shownCommand).join(", ")}${andMore(more)} still ${one ? "runs and ends" : "run and end"} with this session. If you need the outcome, wait for it; your next final answer counts, whatever runs.]`;
}
