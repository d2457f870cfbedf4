/** The rehearsal model's answers: how far the conversation has come in the script, and the next step of it, whatever the request. */
import { shorten } from "../../activities/text/cut.ts";
import type { ScriptStep } from "./script-step.ts";
import { PLAN } from "./flashcards/app-files.ts";

type Part = { readonly type: "text"; readonly text: string } | { readonly type: "image" | "file" };

/** One entry of the conversation, flat and in order, as the Responses API has it. */
export type WireItem =
  | { readonly type: "message"; readonly role: "user" | "assistant"; readonly parts: readonly Part[] }
  | { readonly type: "call"; readonly callId: string }
  | { readonly type: "result"; readonly callId: string; readonly parts: readonly Part[] }
  | { readonly type: "reasoning" | "reference" };

export interface ParsedRequest {
  readonly system: string;
  readonly items: readonly WireItem[];
  /** The tools that may be called now. */
  readonly tools: readonly unknown[];
  readonly cacheKey: string | undefined;
}

export type ReplyPart =
  | { readonly type: "text" | "reasoning"; readonly text: string }
  | { readonly type: "call"; readonly name: string; readonly arguments: unknown; readonly callId: string };

export interface Reply {
  readonly parts: readonly ReplyPart[];
  /** Characters of one delta. */
  readonly chunkChars: number;
  /** Pause between two deltas. */
  readonly chunkDelayMs: number;
}

export interface RehearsalOptions {
  readonly script: readonly ScriptStep[];
  /** Pause between two chunks of the answer, in ms. */
  readonly delayMs: number;
}

/** After this many repeats, a step that keeps being cut off is not repeated again. */
const MAX_REPEATS = 2;
/** Characters per chunk: a word or two, so that the text visibly appears bit by bit. */
const CHUNK_CHARS = 24;
const MAX_TASK_CHARS = 160;

/**
 * Answers requests from a script. The next step is derived from the request, so a restart of either side changes
 * nothing; only if a request shows nothing of the script, the last step sent under its cache key is used.
 */
export function createRehearsal({ script, delayMs }: RehearsalOptions): (request: ParsedRequest) => Reply {
  const served = new Map<string, Position>();
  return (request) => {
    const key = request.cacheKey ?? "";
    const position = findPosition(request, script) ?? served.get(key);
    const { parts, next } = answer(request, position, script);
    if (next !== undefined) served.set(key, next);
    return { parts, chunkChars: CHUNK_CHARS, chunkDelayMs: delayMs };
  };
}

interface Answer {
  readonly parts: readonly ReplyPart[];
  readonly next?: Position;
}

function answer(
  request: ParsedRequest,
  position: Position | undefined,
  script: readonly ScriptStep[],
): Answer {
  const step = position?.step ?? 0;
  if (request.tools.length === 0) {
    return answerText(isSummaryRequest(request) ? summaryAt(step, script) : wrapUpAt(step, script));
  }
  const happened = whatHappened(request.items, position, script);
  if (position?.ended === true || step >= script.length) return answerText(afterTheEnd(happened));
  const again = happened.cutOff && position !== undefined && position.repeats < MAX_REPEATS;
  const next: Position = again
    ? { step, repeats: position.repeats + 1, ended: false }
    : { step: step + 1, repeats: 0, ended: step + 1 >= script.length };
  const scripted = script[next.step - 1];
  if (scripted === undefined) return answerText(afterTheEnd(happened));
  const text = [
    next.step === 1 && !again ? introduction(request) : "",
    ...happened.guidance.map(
      (said) => `You said “${said}”: noted, though a rehearsal can only follow its script.`,
    ),
    happened.surprise === undefined
      ? ""
      : `That is not what the script expects (${happened.surprise}); I continue anyway.`,
    again ? "That step was cut off, so I repeat it." : "",
    scripted.text,
  ];
  return {
    parts: [
      ...(scripted.reasoning === undefined ? [] : [{ type: "reasoning", text: scripted.reasoning } as const]),
      { type: "text", text: text.filter((sentence) => sentence !== "").join(" ") },
      ...scripted.calls.map((call, index) => ({
        type: "call" as const,
        name: call.name,
        arguments: typeof call.input === "function" ? call.input(happened.results) : call.input,
        callId: callId(next.step, next.repeats, index),
      })),
    ],
    next,
  };
}

function answerText(text: string): Answer {
  return { parts: [{ type: "text", text }] };
}

function isSummaryRequest(request: ParsedRequest): boolean {
  const last = request.items.findLast((item) => item.type === "message" && item.role === "user");
  const asked = [request.system, last?.type === "message" ? itemText(last) : ""];
  return asked.some((text) => /summar/i.test(text) && text.includes("Key Technical Decisions"));
}

function introduction(request: ParsedRequest): string {
  const first = request.items.find((item) => item.type === "message" && item.role === "user");
  const task = (first?.type === "message" ? itemText(first) : "").replaceAll(/\s+/g, " ").trim();
  const isOurs = /flash\s?-?cards?|\banki\b|rehears/i.test(task);
  const shown = shorten(task, MAX_TASK_CHARS);
  const instead = isOurs || task === "" ? "" : ` instead of your task (“${shown}”)`;
  return (
    `No model is configured: this is the rehearsal model, which plays a written script, the making of a flashcard ` +
    `application,${instead === "" ? "" : `${instead},`} and really drives the tools. ` +
    "For a real model set OPENAI_API_KEY, and OPENAI_BASE_URL for another server than OpenAI's.\n\n"
  );
}

function afterTheEnd({ guidance }: WhatHappened): string {
  const said = guidance.at(-1);
  return (
    `${said === undefined ? "" : `You said “${said}”. `}The rehearsal has no more script: nothing was done. ` +
    "The application's files are as they were. With OPENAI_API_KEY set, a real model takes a session like this one further."
  );
}

const ERROR = /^\W*error\b|\[exit code (?!0\])/i;
const CUT_OFF =
  /\[interrupted|^Outcome unknown|stopped before this call was started|ended before its outcome was known/;
const SUMMARY = "Session Summary (Compaction Round";
const MAX_QUOTE_CHARS = 120;

interface WhatHappened {
  /** First words of an error that the script did not expect. */
  readonly surprise: string | undefined;
  /** The step was interrupted, or its outcome is unknown. */
  readonly cutOff: boolean;
  /** The person's messages, each shortened for quoting. */
  readonly guidance: readonly string[];
  /** All results in view, oldest first. */
  readonly results: readonly string[];
}

function whatHappened(
  items: readonly WireItem[],
  position: Position | undefined,
  script: readonly ScriptStep[],
): WhatHappened {
  const results = items.flatMap((item) =>
    item.type === "result" ? [{ id: item.callId, text: itemText(item) }] : [],
  );
  const calls = position === undefined ? [] : (script[position.step - 1]?.calls ?? []);
  let surprise: string | undefined;
  let cutOff = false;
  for (const [index, call] of calls.entries()) {
    const id = callId(position?.step ?? 0, position?.repeats ?? 0, index);
    const text = results.find((result) => result.id === id)?.text;
    if (text === undefined) continue;
    if (CUT_OFF.test(text)) cutOff = true;
    else if (call.fails !== true && ERROR.test(text)) surprise ??= quote(text);
  }
  return { surprise, cutOff, guidance: guidanceIn(items), results: results.map((result) => result.text) };
}

/** User messages after the model's last text or result, without the task itself. */
function guidanceIn(items: readonly WireItem[]): string[] {
  const task = items.findIndex((item) => item.type === "message" && item.role === "user");
  const last = items.findLastIndex(
    (item) =>
      item.type === "result" ||
      (item.type === "message" && (item.role === "assistant" || itemText(item).includes(SUMMARY))),
  );
  return items
    .slice(Math.max(task, last) + 1)
    .flatMap((item) => (item.type === "message" && item.role === "user" ? [quote(itemText(item))] : []))
    .filter((text) => text !== "");
}

function quote(text: string): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return shorten(flat, MAX_QUOTE_CHARS);
}

/** A summary of the script up to `step`, in the requested sections. */
function summaryAt(step: number, script: readonly ScriptStep[]): string {
  const done = script.slice(0, step);
  const last = done.findLast(({ calls }) => calls.length > 0);
  const plan = planAt(step, script);
  const bullets = (lines: readonly string[]) =>
    lines.length === 0 ? "None." : lines.map((line) => `- ${line}`).join("\n");
  return [
    "## Original Task",
    "As the user gave it. The rehearsal model plays its script: a flashcard application with SM-2, tests and a card generator.",
    "## Completed Work",
    `Done and committed: ${plan.done.join("; ") || "the first steps"}.`,
    "## Key Technical Decisions",
    bullets(done.flatMap(({ decision }) => decision ?? [])),
    "## Current State",
    `${positionMark(step, script.length)}. Last done: ${firstLine(last?.text ?? "nothing yet")}`,
    "## Pending Work",
    plan.open.length === 0 ? "None." : plan.open.map((text) => `- [ ] ${text}`).join("\n"),
    "## Errors & Resolutions",
    bullets(done.flatMap(({ resolved }) => resolved ?? [])),
  ].join("\n\n");
}

/** The answer when no more steps are allowed. */
function wrapUpAt(step: number, script: readonly ScriptStep[]): string {
  const plan = planAt(step, script);
  return [
    `I stopped after ${step} of the rehearsal's ${script.length} steps.`,
    plan.done.length === 0 ? "No part of the plan is finished." : `Finished: ${plan.done.join("; ")}.`,
    plan.open.length === 0 ? "Nothing is open." : `Still open: ${plan.open.join("; ")}.`,
    "This is the rehearsal model, which plays a written script; a message to this session lets it continue.",
  ].join("\n\n");
}

/** The plan as the script's newest `todo` call up to `step` has it. */
function planAt(
  step: number,
  script: readonly ScriptStep[],
): { done: readonly string[]; open: readonly string[] } {
  const plans = script.slice(0, step).flatMap(({ calls }) => calls.filter((call) => call.name === "todo"));
  const input = plans.at(-1)?.input;
  const items =
    typeof input === "object" && Array.isArray(input["items"]) ? (input["items"] as unknown[]) : [];
  const done = items.filter((item) => (item as { status?: string }).status === "completed").length;
  return { done: PLAN.slice(0, done), open: PLAN.slice(done) };
}

/** `step` counts from 1; 0 is before the first. */
export interface Position {
  readonly step: number;
  /** How many times that step was repeated because it was cut off. */
  readonly repeats: number;
  /** True if the last step's text is in view: nothing follows. */
  readonly ended: boolean;
}

const CALL_ID = /^call_fc(\d{3})(?:r(\d))?_/;
const MARK = /Rehearsal position: step (\d+) of \d+/g;

export const callId = (step: number, repeats: number, index: number): string =>
  `call_fc${String(step).padStart(3, "0")}${repeats === 0 ? "" : `r${repeats}`}_${index}`;

/** Included in every summary, so that the position can be found after all calls are compacted. */
const positionMark = (step: number, steps: number): string => `Rehearsal position: step ${step} of ${steps}`;

/**
 * The highest step that can be seen: by the ids of its calls, by the mark in a summary, or, if the conversation
 * comes as one text, by the step's own words.
 * @returns undefined if no part of the script is in view
 */
export function findPosition(
  request: Pick<ParsedRequest, "items" | "system">,
  script: readonly ScriptStep[],
): Position | undefined {
  const texts = [
    request.system,
    ...request.items.flatMap((item) => (item.type === "message" ? [itemText(item)] : [])),
  ];
  const ended = texts.some((text) => text.includes(firstLine(script.at(-1)?.text ?? "")));
  const byCall = request.items.flatMap((item) => {
    const match = item.type === "call" ? CALL_ID.exec(item.callId) : null;
    return match === null ? [] : [{ step: Number(match[1]), repeats: Number(match[2] ?? 0), ended }];
  });
  const marked = texts.flatMap((text) => [...text.matchAll(MARK)].map((match) => Number(match[1])));
  const said = script.findLastIndex((step) => texts.some((text) => text.includes(firstLine(step.text)))) + 1;
  const found = [
    ...byCall,
    ...marked.map((step) => ({ step, repeats: 0, ended: ended || step >= script.length })),
    // Text alone does not show that a step's calls were made: calls in view are more reliable.
    ...(byCall.length === 0 && said > 0 ? [{ step: said, repeats: 0, ended }] : []),
  ];
  return found.reduce<Position | undefined>(
    (best, position) => (best === undefined || order(position) >= order(best) ? position : best),
    undefined,
  );
}

const order = ({ step, repeats }: Position) => step * 10 + repeats;

function firstLine(text: string): string {
  return text.split("\n")[0] ?? "";
}

function itemText(item: Extract<WireItem, { type: "message" | "result" }>): string {
  return item.parts.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}
