/** How far a conversation has come in the script, what happened since its last step, and the rehearsal's reports on that. */
import { shorten } from "../../activities/text/cut.ts";
import type { WireItem, ParsedRequest } from "./wire.ts";
import type { ScriptStep } from "./script-step.ts";
import { PLAN } from "./flashcards/app-files.ts";

const ERROR = /^\W*error\b|\[exit code (?!0\])/i;
const CUT_OFF =
  /\[interrupted|^Outcome unknown|stopped before this call was started|ended before its outcome was known/;
const SUMMARY = "Session Summary (Compaction Round";
const MAX_QUOTE_CHARS = 120;

export interface WhatHappened {
  /** First words of an error that the script did not expect. */
  readonly surprise: string | undefined;
  /** The step was interrupted, or its outcome is unknown. */
  readonly cutOff: boolean;
  /** The person's messages, each shortened for quoting. */
  readonly guidance: readonly string[];
  /** All results in view, oldest first. */
  readonly results: readonly string[];
}

export function whatHappened(
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
export function summaryAt(step: number, script: readonly ScriptStep[]): string {
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
export function wrapUpAt(step: number, script: readonly ScriptStep[]): string {
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
export function positionOf(
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

export function itemText(item: Extract<WireItem, { type: "message" | "result" }>): string {
  return item.parts.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}
