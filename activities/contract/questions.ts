/** Questions to people, as the workflow, the activities and the clients see them: who may answer what. */
import { amountLike, readMore, type OpenBudget } from "./limits.ts";
import { cleanText, personName } from "../text/clean.ts";
import { cutChars } from "../text/cut.ts";
import { inAlternatives } from "../text/format.ts";
import type { RunToolInput, ToolFacts } from "./calls.ts";

/**
 * `egress`: domains that the sandbox may not reach. `mcp`: a server's question. `budget`: whether the session may
 * exceed a limit.
 */
export type QuestionKind = "ask" | "approval" | "plan" | "egress" | "mcp" | "budget";

/** What people are told that a question is. */
export const QUESTION_TITLES: Readonly<Record<QuestionKind, string>> = {
  ask: "Question",
  mcp: "Question from an MCP server",
  budget: "Limit reached",
  approval: "Approval needed",
  plan: "Plan to approve",
  egress: "Network access to approve",
};

/** Whether the answer is text or one of the options; the other kinds ask for permission. */
export const wantsWords = (kind: string): boolean => kind === "ask" || kind === "mcp" || kind === "budget";

/** What the workflow keeps of an open question; the full text is in the question's row. */
export interface QuestionFacts {
  /**
   * Derived from the call: `s12c0`; `s12c0e` for kind `egress`, `s12c0q1` and so on for kind `mcp`. For kind
   * `budget`, derived from the waiting step: `s13cost`, `s13steps`, `s13budget`.
   */
  readonly id: string;
  readonly kind: QuestionKind;
  /** At most 200 characters. */
  readonly text: string;
  readonly options?: readonly string[];
  /** The answer if none comes within `expiresInMs`, or in an unattended session. */
  readonly default?: string;
  /** Absent: the question never expires. */
  readonly expiresInMs?: number;
  /** For kind `budget`: how much more may be granted at most, in USD or steps. Absent means any amount. */
  readonly most?: number;
  /** Names of those whose answer counts. Absent means everybody's. */
  readonly answerers?: readonly string[];
}

/** Whether a word is the id of a question of any kind, and not an answer to one. */
export const isQuestionId = (word: string): boolean =>
  /^s\d+(c\d+(e|q\d+)?|(cost|steps|budget)\d*)$/.test(word);

/** How a question ended. `superseded` is set by a reset. */
export type Settlement =
  | { readonly how: "answered"; readonly text: string; readonly by?: string }
  /** For an approval or a plan: `always` means for the rest of the session. `text` is the person's comment. */
  | { readonly how: "allowed"; readonly always?: true; readonly text?: string; readonly by?: string }
  | { readonly how: "denied"; readonly text?: string; readonly by?: string }
  | { readonly how: "declined"; readonly by?: string }
  | { readonly how: "defaulted"; readonly why: "expired" | "unattended" }
  | { readonly how: "withdrawn"; readonly why: "said" | "unattended" | "too-many" | "stopped" };

export type AskedPerson =
  | {
      readonly kind: "asked";
      readonly question: QuestionFacts;
      /** No one is asked: the question ends with this settlement at once. */
      readonly settled?: Settlement;
    }
  /** The call has its result and works on; the answer will be a message. */
  | { readonly kind: "later"; readonly question: QuestionFacts; readonly facts: ToolFacts }
  /** No question is needed: the call is allowed, or has ended. */
  | { readonly kind: "passed" };

export type AskedBudget =
  | { readonly kind: "asked"; readonly question: QuestionFacts; readonly used: number; readonly of: number }
  /** The limit was already raised, by an answer on another branch of the session. */
  | { readonly kind: "raised"; readonly of: number }
  /** Nothing more may be granted, so there is nothing to ask. */
  | { readonly kind: "passed" };

export interface SettleBudgetInput extends OpenBudget {
  readonly settlement: Settlement;
}

export interface SettleQuestionInput extends RunToolInput {
  readonly id: string;
  readonly settlement: Settlement;
}

/** `allowed`: the call is run now. `noted`: for a server's question, whose outcome the call reads when it is run. */
export type SettledQuestion =
  | { readonly kind: "allowed" }
  | { readonly kind: "noted"; readonly how: Settlement["how"] }
  | { readonly kind: "result"; readonly facts: ToolFacts };

/** What the operator is notified of. */
export interface NotifyInput {
  readonly event: "question:asked" | "session:ended";
  /** Which question was asked. */
  readonly question?: string;
}

/** An answer as sent. A bare string, as from the Web UI, is accepted too, if exactly one question is open. */
export interface AnswerMessage {
  /** Which question; may be omitted if exactly one is open. */
  readonly question?: string;
  readonly text?: string;
  /** One of the options, by its number from 1 or by its text. */
  readonly option?: number | string;
  readonly action?: "allow" | "allow-always" | "deny" | "decline";
  readonly by?: string;
}

/** Of a call to approve, as watchers see it; all of it is in the question's row. Source: as long as the agent's own question. */
export const MAX_SHOWN_CHARS = 2_000;

/** Longest answer in a signal; longer text is sent as a message (`say`). Source: as messages, 16 KB. */
export const MAX_ANSWER_CHARS = 16_000;

type Action = NonNullable<AnswerMessage["action"]>;

/** What an answer's parts are called where it comes from, for refusals. */
export interface AnswerNames {
  readonly text: string;
  readonly option: string;
  /** Such as `the action allow or deny`. */
  readonly actions: (...names: readonly Action[]) => string;
}

const FIELDS: AnswerNames = {
  text: "text",
  option: "option",
  actions: (...names) => `the action ${inAlternatives(names)}`,
};

type Open = Pick<QuestionFacts, "id" | "kind" | "options" | "most" | "answerers">;

export type ReadAnswer =
  | { readonly ok: true; readonly id: string; readonly settlement: Settlement }
  | { readonly ok: false; readonly reason: string };

/** What an answer means for the open questions; or why it is not accepted, worded for its sender. */
export function readAnswer(open: readonly Open[], message: unknown, names = FIELDS): ReadAnswer {
  const answer = messageOf(message);
  if (answer === undefined) return refused('send {"question": "s1c0", "text": "…"}, or a plain string');
  const question = questionOf(open, answer.question);
  if ("reason" in question) return question;
  const { answerers } = question;
  if (answerers !== undefined && (answer.by === undefined || !answerers.includes(answer.by)))
    return refused(
      `only ${inAlternatives(answerers.slice(0, MAX_NAMED))} may answer ${question.id}, and the answer ${answer.by === undefined ? "does not say whose it is (by)" : `is from ${answer.by}`}`,
    );
  const settlement = settlementOf(question, answer, names);
  return typeof settlement === "string"
    ? refused(settlement)
    : { ok: true, id: question.id, settlement: withPerson(settlement, answer.by) };
}

/** Of those who may answer, in a refusal. */
const MAX_NAMED = 10;

const refused = (reason: string) => ({ ok: false as const, reason });

function questionOf(open: readonly Open[], id: string | undefined): Open | ReturnType<typeof refused> {
  const names = open.map((question) => question.id).join(", ");
  if (open.length === 0) return refused("no question is open");
  if (id === undefined) {
    const [only] = open;
    return only !== undefined && open.length === 1
      ? only
      : refused(`say which question it answers: ${names}`);
  }
  return open.find((question) => question.id === id) ?? refused(`${id} is not open; open is ${names}`);
}

function messageOf(message: unknown): AnswerMessage | undefined {
  if (typeof message === "string") return message.trim() === "" ? undefined : { text: textOf(message) };
  if (typeof message !== "object" || message === null) return undefined;
  const { question, text, option, action, by } = message as Record<string, unknown>;
  const isText = (value: unknown) => value === undefined || typeof value === "string";
  if (![question, text, action, by].every(isText)) return undefined;
  if (!isText(option) && typeof option !== "number") return undefined;
  return {
    question: question === undefined ? undefined : nameOf(question as string),
    text: text === undefined || text === "" ? undefined : textOf(text as string),
    option: option === undefined ? undefined : (option as number | string),
    action: action === undefined ? undefined : (nameOf(action as string) as Action),
    by: personName(by),
  };
}

const textOf = (text: string) => cleanText(text).trim();
/** A question's name, as quoted in refusals. */
const nameOf = (name: string) => cutChars(cleanText(name), 80);

type Said = Exclude<Settlement, { readonly how: "defaulted" | "withdrawn" }>;

function withPerson(settlement: Said, by: string | undefined): Said {
  return by === undefined ? settlement : { ...settlement, by };
}

function settlementOf(
  { kind, options, most }: Open,
  { text, option, action }: AnswerMessage,
  names: AnswerNames,
): Said | string {
  if (text !== undefined && text.length > MAX_ANSWER_CHARS)
    return `the answer has more than ${MAX_ANSWER_CHARS} characters; say it as a message`;
  if (action === "decline") return { how: "declined" };
  if (!wantsWords(kind)) return leaveOf(kind, { text, action }, names);
  if (action !== undefined) {
    const answerFields = options === undefined ? names.text : inAlternatives([names.option, names.text]);
    return `${names.actions(action)} is for approvals, and this is a question: answer it with ${answerFields}`;
  }
  const chosen = option ?? text;
  if (chosen === undefined) return "the answer is empty";
  if (options === undefined)
    return option === undefined
      ? { how: "answered", text: String(chosen) }
      : `the question has no options: answer it with ${names.text}`;
  const label =
    options.find((option) => option.toLowerCase() === String(chosen).toLowerCase()) ??
    (/^\d+$/.test(String(chosen)) ? options[Number(chosen) - 1] : undefined);
  if (label === undefined && kind === "budget") {
    const more = readMore(options, String(chosen), most);
    if (more !== undefined) return more.ok ? { how: "answered", text: more.text } : more.reason;
  }
  if (label !== undefined) return { how: "answered", text: label };
  const numbered = options.map((option, index) => `${index + 1} ${option}`).join(", ");
  return `"${cutChars(String(chosen), 80)}" is not among the options: ${numbered}${kind === "budget" ? `; or give an amount such as "${amountLike(options)}"` : ""}`;
}

function leaveOf(
  kind: QuestionKind,
  { text, action }: { readonly text: string | undefined; readonly action: Action | undefined },
  names: AnswerNames,
): Said | string {
  const comment = text === undefined ? {} : { text };
  if (action === "allow") return { how: "allowed", ...comment };
  if (action === "allow-always" && kind !== "plan") return { how: "allowed", always: true, ...comment };
  if (action === "deny") return { how: "denied", ...comment };
  // For a plan, text is the changes that the person wants; for an approval, text alone grants nothing.
  if (kind === "plan" && text !== undefined && action === undefined) return { how: "denied", ...comment };
  return kind === "plan"
    ? `answer a plan with ${names.actions("allow", "deny")}, or with ${names.text}: the changes that you want`
    : `answer an approval with ${names.actions("allow", "allow-always", "deny")}`;
}
