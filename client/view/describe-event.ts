/**
 * Events in words, once for the terminal, the report, the page and other views: plain sentences without markup, with what a view
 * needs to draw them. Each event type has its entry; `[]` says on purpose that there is nothing to tell.
 */
import { RATE_WORDS } from "../../activities/config/model-target.ts";
import { QUESTION_TITLES } from "../../activities/contract/questions.ts";
import type { EventData, EventType, SessionEvent } from "../../activities/store/event.ts";
import { dollars, duration, plural, tokens, usageText } from "../../activities/text/format.ts";
import { doubtText, REFUSED_SUMMARY, refusedText } from "../console/doubt-text.ts";
import { DELIVERY_SENTENCES } from "./describe-delivery.ts";
import { SANDBOX_SENTENCES } from "./describe-sandbox.ts";
import {
  type Describe,
  type KnownPeople,
  type Sentence,
  type Tone,
  notice,
  people,
  person,
  quiet,
  warn,
} from "./sentence.ts";
import { VERIFIED_WORDS } from "./verified-words.ts";
import { contextText, harmlessLine, present, stamp } from "../console/format.ts";

/** @returns nothing for an event of a newer version too */
export function describeEvent(event: SessionEvent, known: KnownPeople = {}): readonly Sentence[] {
  const sentences = SENTENCES[event.type] as Describe<EventType> | undefined;
  const raw = sentences?.(event.data, event, known) ?? [];
  const clean = raw.map(({ text, facts = "", ...rest }) => ({
    ...rest,
    text: harmlessLine(text, MAX_CHARS),
    facts: harmlessLine(facts, MAX_CHARS) || undefined,
  }));
  return clean.filter(({ text, facts = "" }) => text + facts !== "");
}

/** Of a sentence, whatever its parts are. */
const MAX_CHARS = 2_000;
const NAMES_CHARS = 200;
const REASON_CHARS = 500;
const LONG_CHARS = 1_000;
const COMMAND_CHARS = 120;

const WAIT_WORDS: Readonly<Record<string, string>> = {
  time: "the time is over",
  message: "a message came",
  answer: "a question was answered",
  process: "a command has ended",
  woken: "a person ended it",
  interrupted: "a person stopped it",
  cancelled: "the run was cancelled",
  deadline: "the deadline is near",
  ended: "its run is over",
};

const byOther = (by: string | null | undefined, owner: string | undefined): string =>
  by === undefined || by === null || by === owner ? "" : ` (${person(by)})`;

const SENTENCES: { readonly [Type in EventType]: Describe<Type> } = {
  "session:started": ({ resetTo, continued, task, model }, { sessionId, epoch }) => {
    if (resetTo !== undefined)
      return [notice(`back to before step ${resetTo}: ${sessionId}, epoch ${epoch}`, "▶")];
    if (continued) return [notice(`resumed: ${sessionId}`, "▶")];
    return [notice(`task: ${harmlessLine(task, NAMES_CHARS)}`, "▶"), quiet(`model ${model}`)];
  },
  "session:ended": (data) => ended(data),
  "wait:started": ({ until, reason, targets }) => [
    quiet(
      `waits${until === null ? "" : ` until ${until}`}${targets.length === 0 ? "" : ` for ${harmlessLine(targets.join(", "), NAMES_CHARS)}`} (${harmlessLine(reason, NAMES_CHARS)})`,
    ),
  ],
  "wait:ended": ({ how, ms }) => [quiet(`the wait ended after ${duration(ms)}: ${WAIT_WORDS[how] ?? how}`)],
  ...DELIVERY_SENTENCES,
  "step:started": ({ estimatedInput, window }, { step }) => [
    {
      ...notice(`step ${step}`),
      facts: window === undefined ? undefined : contextText(estimatedInput, window),
    },
  ],
  "llm:thinking": ({ hidden }) =>
    hidden ? [quiet("thinking: the provider is at work, but shows nothing yet")] : [],
  // The model's own words.
  "llm:chunk": () => [],
  "llm:response": ({ usageDoubtful, tokenUsage, summaryRefused, refusedTools }) =>
    present(
      usageDoubtful && warn(doubtText(tokenUsage.input)),
      summaryRefused && warn(REFUSED_SUMMARY),
      refusedTools && warn(refusedText(refusedTools)),
    ),
  "llm:tool-call": ({ name, about }) => [notice(`${name} ${harmlessLine(about, COMMAND_CHARS)}`.trim(), "●")],
  "llm:tool-result": ({ name, excerpt, ...end }) => {
    const how = callEnd(end);
    // The facts have the exit code.
    const output = excerpt.replace(/\[exit code \d+\]\s*$/, "");
    return [{ text: name, ...how, detail: how.tone === "good" ? undefined : output }];
  },
  "llm:error": ({ message, class: kind, final, retryInMs }, { at }) => {
    const again = retryInMs === null ? "" : `; again in ${duration(retryInMs)}${momentOf(at, retryInMs)}`;
    const text = `model: ${harmlessLine(message, LONG_CHARS)} (${kind})${again}`;
    return [final ? { tone: "bad", mark: "✗", text } : warn(text, "↻")];
  },
  "llm:throttled": ({ limit, waitMs }) => [
    warn(`waits for the model: limit of ${RATE_WORDS[limit]} reached; next try in ${duration(waitMs)}`, "…"),
  ],
  "llm:switched": ({ from, to, reason }) => {
    const why = reason === undefined || reason === "person" ? "" : ` (${WHY_SWITCHED[reason]})`;
    return [notice(`model: ${from} → ${to}${why}`)];
  },
  "llm:unsupported-input": ({ message }) => [warn(harmlessLine(message, REASON_CHARS))],
  "limit:near": ({ used, max, scope }) => [
    warn(
      scope === undefined
        ? `${dollars(used)} of the ${dollars(max)} that this session may cost`
        : `${dollars(used)} of the budget of ${dollars(max)} for ${harmlessLine(scope, NAMES_CHARS)}`,
    ),
  ],
  "context:compressing": ({ tokensBefore }) => [notice(`compacting ${tokens(tokensBefore)} tokens …`, "◆")],
  "context:compressed": (data) => [compressed(data)],
  "context:pruned": ({ prunedCount, savedTokens }) => [
    notice(`${plural(prunedCount, "old tool result")} hidden, ${tokens(savedTokens)} tokens freed`, "✂"),
  ],
  "message:queued": ({ position, excerpt }) => {
    const positionText = position > 1 ? ` (position ${position})` : "";
    return [people(`waits for the next step${positionText}: ${harmlessLine(excerpt, NAMES_CHARS)}`, "✉")];
  },
  "message:withdrawn": ({ by }, _event, { owner }) => [
    people(`a message was taken back${byOther(by, owner)}`, "✉"),
  ],
  "message:dequeued": (data, _event, known) => [
    people(`${sendersText(data, known)}: ${harmlessLine(data.text, LONG_CHARS)}`, "▸"),
  ],
  "person:acted": ({ action, by }, _event, { owner }) =>
    by === owner ? [] : [people(`${person(by)}: ${harmlessLine(action, 40)}`, "▸")],
  "instructions:loaded": ({ path }) => [quiet(`instructions ${harmlessLine(path, NAMES_CHARS)}`)],
  "skill:opened": ({ name }) => [quiet(`skill ${harmlessLine(name, 80)}`)],
  ...SANDBOX_SENTENCES,
  "question:asked": ({ id, kind, text }) => [{ ...warn(questionTitle(id, kind), "?"), detail: text }],
  "question:answered": ({ id, how, by, excerpt }) => {
    const excerptText = excerpt === "" ? "" : `: ${harmlessLine(excerpt, NAMES_CHARS)}`;
    return [people(`${id} ${HOW_ANSWERED[how] ?? how}${excerptText}${byOther(by, undefined)}`, "▸")];
  },
  "question:expired": (data) => [
    warn(`${data.id}: no answer came, so the default is used: ${harmlessLine(data.default, 200)}`, "?"),
  ],
  "question:withdrawn": ({ id, reason }) => [
    { ...quiet(`${id} is withdrawn: ${WHY_WITHDRAWN[reason] ?? reason}`), mark: "?" },
  ],
  "delegate:started": ({ childId, about }) => [
    notice(`${childId} works on: ${harmlessLine(about, COMMAND_CHARS)}`, "⇢"),
  ],
  "delegate:ended": ({ childId, status, steps, costUsd, applied, notApplied }) => {
    const facts = present(
      status,
      plural(steps, "step"),
      costUsd !== null && dollars(costUsd),
      applied.length > 0 && `${plural(applied.length, "file")} applied`,
    );
    const unapplied = notApplied.map(({ path, reason }) => `${path} (${reason})`).join(", ");
    return present(
      notice(`${childId}: ${facts.join(", ")}`, "⇠"),
      unapplied !== "" && warn(`not applied: ${harmlessLine(unapplied, REASON_CHARS)}`),
    );
  },
  "mcp:connected": ({ server, tools }) => [quiet(`${harmlessLine(server, 40)}: ${plural(tools, "tool")}`)],
  "mcp:login-needed": ({ command }) => [warn(harmlessLine(command, 200), "→")],
  "mcp:changed": ({ server, added, removed }) => {
    const signed = [...added.map((name) => `+${name}`), ...removed.map((name) => `−${name}`)];
    const names = signed.length === 0 ? "" : `: ${harmlessLine(signed.join(" "), NAMES_CHARS)}`;
    return [quiet(`${harmlessLine(server, 40)} changed its tools${names}`)];
  },
  "mcp:failed": ({ server, message }) => [
    warn(`MCP server ${harmlessLine(server, 40)}: ${harmlessLine(message, 300)}`),
  ],
  "record:missing": (data) => [warn(missingText(data))],
};

const WHY_SWITCHED = { fallback: "the first one failed", return: "the session's own model again" } as const;

const HOW_ANSWERED: Readonly<Record<string, string>> = {
  answered: "answered",
  allowed: "allowed",
  "allowed-always": "allowed for the rest of the session",
  denied: "not allowed",
  declined: "not answered: declined",
  defaulted: "no person is asked, so the default is used",
};

const WHY_WITHDRAWN: Readonly<Record<string, string>> = {
  said: "a message came instead of an answer",
  stopped: "the step was stopped",
  unattended: "no person is asked in this session",
  "too-many": "too many questions are open at once",
};

/** `Approval needed: s2c0`. */
export function questionTitle(id: string, kind: string): string {
  return `${QUESTION_TITLES[kind as keyof typeof QUESTION_TITLES] ?? QUESTION_TITLES.approval}: ${id}`;
}

/** Of a long wait: a moment that people can plan with. */
function momentOf(at: string, afterMs: number): string {
  return afterMs < 60_000 ? "" : `, at ${stamp(new Date(Date.parse(at) + afterMs), "UTC")}`;
}

/** What a restored database lacks. */
export function missingText({ from, to, calls }: EventData["record:missing"]): string {
  const steps = from === to ? `step ${from} is` : `steps ${from} to ${to} are`;
  const what =
    calls === undefined ? steps : `${plural(calls, "result")} of step ${from} ${calls === 1 ? "is" : "are"}`;
  return `Postgres was restored from an older copy: ${what} missing from the record, with the messages and costs; what was done then may be in the files`;
}

/** What a watcher of a session is told whose newest events are gone. @param what is gone */
export function restoredText(what = "some of what is shown above"): string {
  return `Postgres was restored from an older copy: ${what} is not on record any more. What follows is new.`;
}

function compressed(data: EventData["context:compressed"]): Sentence {
  const { status, round, tokensBefore, tokensAfter, messages, reason, strategy, trigger } = data;
  const sizes = `${tokens(tokensBefore)} → ${tokens(tokensAfter)} tokens`;
  const count = plural(messages, "message");
  if (status === "undone") return notice(`round ${round} undone: ${count} in view again, ${sizes}`, "◇");
  if (status === "compacted")
    return notice(
      `context compacted, round ${round}: ${sizes}, ${count} into a summary (${strategy}, ${trigger})`,
      "◆",
    );
  const why = reason === null ? "" : `: ${harmlessLine(reason, 160)}`;
  return warn(`context not compacted${why}; history is unchanged`);
}

/**
 * Who sent the messages that became one, in their order, so that the names fit its labels. `you`: the owner, or nobody who
 * is known. A watcher that came later does not know all senders.
 */
function sendersText(
  { ids, by = [] }: EventData["message:dequeued"],
  { owner, senders = new Map() }: KnownPeople,
): string {
  // A long message is in pieces: a, a#2, a#3.
  const known = ids.map((id) => (senders.has(id) ? id : id.replace(/#\d+$/, "")));
  const names = known.every((id) => senders.has(id)) ? known.map((id) => senders.get(id)) : by;
  const everybody = [...new Set(names)];
  if (everybody.every((name) => name === undefined || name === owner)) return "you";
  return person((everybody.length === 1 ? everybody : names).map((name) => name ?? "you").join(", "));
}

const CALL_ENDS: Readonly<Record<string, { readonly mark: string; readonly tone: Tone }>> = {
  completed: { mark: "✓", tone: "good" },
  error: { mark: "✗", tone: "bad" },
  interrupted: { mark: "■", tone: "warn" },
};

/** How a tool call ended. A command that ended with another exit code than 0 has failed. */
export function callEnd(end: {
  readonly outcome: string;
  readonly exitCode: number | null;
  readonly durationMs?: number;
  readonly truncated?: boolean;
}): Required<Pick<Sentence, "mark" | "tone" | "facts">> {
  const { outcome, exitCode, durationMs, truncated } = end;
  const failedCommand = exitCode !== null && exitCode !== 0;
  const facts = present(
    failedCommand && `exit ${exitCode}`,
    outcome !== "completed" && outcome,
    durationMs !== undefined && duration(durationMs),
    truncated && "output cut",
  );
  const kind = failedCommand && outcome === "completed" ? "error" : outcome;
  return { ...(CALL_ENDS[kind] ?? { mark: "?", tone: "warn" }), facts: facts.join(" · ") };
}

const ENDINGS: Readonly<Record<string, Sentence>> = {
  completed: { tone: "good", mark: "✓", text: "completed" },
  failed: { tone: "bad", mark: "✗", text: "failed" },
  cancelled: warn("cancelled", "■"),
  max_steps: warn("stopped: step limit reached", "■"),
  cost: warn("stopped: cost limit reached (limits.maxCostUsd)", "■"),
  budget: warn("stopped: a budget of the operator's is used up", "■"),
  deadline: warn("stopped: the deadline has passed (limits.deadline)", "■"),
};

function ended(data: EventData["session:ended"]): Sentence[] {
  const { status, limit, reason, steps, rounds, usage, costUsd, durationMs, verified: outcome } = data;
  const ending = ENDINGS[limit ?? status] ?? warn(status, "■");
  const facts = present(
    plural(steps, "step"),
    rounds > 0 && plural(rounds, "compaction round"),
    usageText(usage),
    costUsd !== null && dollars(costUsd),
    duration(durationMs),
    outcome !== undefined && VERIFIED_WORDS[outcome],
  );
  return present(
    { ...ending, facts: facts.join(" · ") },
    reason !== null && { tone: ending.tone, text: harmlessLine(reason, LONG_CHARS) },
  );
}
