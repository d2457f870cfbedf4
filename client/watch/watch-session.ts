/** Shows a session and its delegates live until it ends, for people or as JSON lines. Shared by `run` and `watch`. */
import type { SessionEvent } from "../../activities/store/event.ts";
import { readEvents } from "../../activities/store/events.ts";
import { findSessionRow } from "../../activities/store/reading.ts";
import { listQuestions, type ListedQuestion } from "../../activities/store/questions.ts";
import { toDeliveryState, listPublications } from "../../activities/store/repositories.ts";
import { sessionWaits } from "../../activities/store/waits.ts";
import { andMore, takeFirst } from "../../activities/text/lists.ts";
import { describeRun } from "../connect/describe-run.ts";
import type { Services } from "../connect/connection.ts";
import { toExitCode, exitCodes, type ExitCode } from "../console/errors.ts";
import { follow, type FollowEnd, type FollowItem } from "./follow.ts";
import type { Output } from "../console/output.ts";
import { forPeople, type Show, type Watch } from "./show.ts";
import { present, shellWord } from "../console/format.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { PlainAnswer } from "../render/answers.ts";
import { Renderer } from "../render/renderer.ts";
import { restoredText } from "../view/describe-event.ts";
import { isNotVerified } from "../view/verified-words.ts";

/** Resolves with the exit code of the outcome, or 130 when the person detached with Ctrl-C. */
export async function watchSession(watch: Watch): Promise<ExitCode> {
  const { services, sessionId, output } = watch;
  const detach = new AbortController();
  const onSignal = () => detach.abort();
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  const show = watch.json ? jsonLines(output, sessionId) : forPeople(output);
  const children = watch.children === true ? new WatchedChildren(watch, show) : undefined;
  let shownSeq = watch.afterSeq;
  try {
    await watch.begin?.();
    for await (const item of follow({
      store: services.store,
      sessionId,
      afterSeq: watch.afterSeq,
      signal: detach.signal,
      describe: () => describeRun(services, sessionId),
    })) {
      switch (item.kind) {
        case "event":
          // The outcome must be the last line.
          if (item.event.type === "session:ended") await children?.ended();
          show.event(item.event, item.live);
          shownSeq = item.event.seq;
          children?.follow(item.event);
          break;
        case "tick":
          show.tick();
          if (watch.exitOnQuestion === true) {
            const questions = await questionsWaitedFor(services, sessionId);
            // What it asks is shown before.
            if (questions.length > 0 && !(await hasMore(services, sessionId, shownSeq)))
              return leave(watch, questions, show);
          }
          break;
        case "ended":
          return await showEnd(watch, item, show);
        case "restored":
          shownSeq = item.toSeq;
          showProgress(item, show);
          break;
        case "lost":
        case "back":
        case "trouble":
        case "output":
        case "caught-up":
          showProgress(item, show);
          break;
      }
    }
  } finally {
    children?.close();
    show.close();
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  }
  output.note(`\n${detachedText(sessionId)}\n`);
  return exitCodes.interrupted;
}

function showProgress(item: Exclude<FollowItem, { kind: "event" | "tick" | "ended" }>, show: Show): void {
  switch (item.kind) {
    case "lost":
      show.note(`Postgres does not answer (${item.message}); the task continues; trying again …`);
      break;
    case "back":
      show.note("Postgres is back.");
      break;
    case "restored":
      show.note(restoredText(`what was shown after event ${item.toSeq}`));
      break;
    case "trouble":
      show.trouble(item.message);
      break;
    case "output":
      show.lastOutput(item.lines);
      break;
    case "caught-up":
      show.tick();
      break;
  }
}

/** Shows the outcome, then how to continue. */
async function showEnd(
  { services, sessionId, output, closing }: Watch,
  end: FollowEnd,
  show: Show,
): Promise<ExitCode> {
  show.end(end);
  show.close();
  const { failure, isNotVerified } = await outcomeIn(services, sessionId);
  // What the policy refused cannot simply go on: its message says how.
  const goOn = failure === "PolicyRefused" ? undefined : `longhaul say ${shellWord(sessionId)} "go on"`;
  for (const line of (await closing?.(end, goOn)) ?? nextHints(sessionId, goOn)) output.note(`${line}\n`);
  return toExitCode(end.status, {
    delivery: await deliveryIn(services, sessionId),
    failure,
    isNotVerified,
  });
}

/** Treats a missing table in a new database as no delivery. */
const deliveryIn = async ({ store }: Services, sessionId: string) =>
  toDeliveryState((await unlessTableMissing(() => listPublications(store.db, sessionId))) ?? []);

async function outcomeIn({ store }: Services, sessionId: string) {
  const row = await findSessionRow(store.db, sessionId);
  const failure = (row?.error as { readonly type?: string } | null | undefined)?.type;
  return { failure, isNotVerified: row !== undefined && isNotVerified(row) };
}

const nextHints = (id: string, goOn: string | undefined) =>
  present(
    `Its files:     longhaul pull ${shellWord(id)} ${shellWord(id)}`,
    goOn !== undefined && `Go on with it: ${goOn}`,
  );

function detachedText(sessionId: string): string {
  return [
    `Detached: ${sessionId} continues without this client.`,
    `  watch it again:  longhaul watch ${shellWord(sessionId)}`,
    `  end it:          longhaul cancel ${shellWord(sessionId)}`,
  ].join("\n");
}

/** Whether there are events that were not shown yet. */
const hasMore = async ({ store: { db } }: Services, id: string, shownSeq: number): Promise<boolean> =>
  (await readEvents(db, id, shownSeq, 1).catch(() => [])).length > 0;

/**
 * The questions without whose answers the session, or a delegate of it, does not go on. One that does not block it counts once there is
 * nothing else to do.
 */
async function questionsWaitedFor({ store: { db } }: Services, id: string): Promise<ListedQuestion[]> {
  // If Postgres does not answer, the next reading of events says so.
  const open = await listQuestions(db, { of: id }).catch(() => []);
  if (open.length === 0) return [];
  const ids = [...new Set(open.map(({ session }) => session))];
  const waits = await sessionWaits(db, ids).catch(() => []);
  const waiting = new Set(
    waits.filter(({ waitsFor }) => waitsFor === "person" || waitsFor === "budget").map((wait) => wait.id),
  );
  return open.filter(({ session }) => waiting.has(session));
}

function leave({ sessionId, output }: Watch, questions: readonly ListedQuestion[], show: Show): ExitCode {
  show.close();
  const names = questions.map(({ id, session }) => (session === sessionId ? id : `${id} of ${session}`));
  const { shown, more } = takeFirst(names, MAX_NAMED);
  const what = questions.every(({ kind }) => kind === "budget") ? "a person, for more" : "a person";
  const lines = [
    `${sessionId} waits for ${what}: ${shown.join(", ")}${andMore(more)}. It goes on with the answer.`,
    `  what it asks:    longhaul questions ${shellWord(sessionId)}`,
    `  watch it again:  longhaul watch ${shellWord(sessionId)}`,
  ];
  output.note(`\n${lines.join("\n")}\n`);
  return exitCodes.waits;
}

/** Of the questions, in a line. */
const MAX_NAMED = 5;

function jsonLines(output: Output, sessionId: string): Show {
  let heardEnd = false;
  let last: SessionEvent | undefined;
  return {
    event: (event) => {
      if (event.type.startsWith("session:")) heardEnd = event.type === "session:ended";
      last = event;
      output.json(event);
    },
    tick: () => undefined,
    lastOutput: () => undefined,
    close: () => undefined,
    note: (text) => output.note(`${text}\n`),
    trouble: (message) => output.note(`tried again: ${message}\n`),
    end: (end) => {
      // The last line is always the outcome, even if the run could not store it.
      if (heardEnd || end.reason === undefined) return;
      output.json({
        seq: end.lastSeq,
        sessionId,
        epoch: last?.epoch ?? 1,
        step: last?.step ?? 0,
        attempt: 1,
        at: new Date().toISOString(),
        type: "session:ended",
        data: { status: end.status, reason: end.reason, text: end.result },
      });
    },
  };
}

type Options = Pick<Watch, "services" | "sessionId" | "json" | "output">;

/** Time to wait for the delegates' remaining events when the parent ends. */
const LAST_WORDS_MS = 3_000;

/** The delegates of a watched session, each followed from its beginning to its end in parallel with its parent. */
class WatchedChildren {
  readonly #options: Options;
  readonly #show: Show;
  readonly #over = new AbortController();
  readonly #followed = new Map<string, Promise<void>>();

  constructor(options: Options, show: Show) {
    this.#options = options;
    this.#show = show;
  }

  /** Call with each event of the parent. */
  follow({ type, data }: SessionEvent): void {
    if (type !== "delegate:started") return;
    const { childId } = data as SessionEvent<"delegate:started">["data"];
    if (!this.#followed.has(childId)) this.#followed.set(childId, this.#followChild(childId));
  }

  /** Waits briefly for the last events: delegates end before their parent, but one that a person resumed continues. */
  async ended(): Promise<void> {
    await Promise.race([
      Promise.all(this.#followed.values()),
      sleep(LAST_WORDS_MS, undefined, { ref: false }),
    ]);
    this.close();
  }

  close(): void {
    this.#over.abort();
  }

  async #followChild(childId: string): Promise<void> {
    const { services, json, output } = this.#options;
    const show = json ? (event: SessionEvent) => output.json(event) : this.#lines(childId);
    for await (const item of follow({
      store: services.store,
      sessionId: childId,
      afterSeq: 0,
      signal: this.#over.signal,
      describe: () => describeRun(services, childId),
    })) {
      if (item.kind === "event") show(item.event);
    }
  }

  /** Prints whole lines, each labelled with its call: otherwise, pieces of several answers would mix. */
  #lines(childId: string): (event: SessionEvent) => void {
    const { output, sessionId } = this.#options;
    const name = output.style("dim", `${childId.slice(sessionId.length + 1)} │ `);
    let line = "";
    const write = (text: string) => {
      const lines = `${line}${text}`.split("\n");
      line = lines.pop() ?? "";
      for (const whole of lines.filter((text) => text.trim() !== "")) this.#show.note(`${name}${whole}`);
    };
    const { style, columns } = output;
    const renderer = new Renderer({ write, style, columns, answer: new PlainAnswer(write, undefined) });
    return (event) => {
      if (event.type !== "llm:chunk") renderer.event(event);
    };
  }
}
