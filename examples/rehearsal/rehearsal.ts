/** The rehearsal model's answers: the next step of its script, whatever the request. */
import { shorten } from "../../activities/text/cut.ts";
import type { ParsedRequest, Reply, ReplyPart } from "./wire.ts";
import {
  callId,
  positionOf,
  itemText,
  type Position,
  summaryAt,
  wrapUpAt,
  whatHappened,
  type WhatHappened,
} from "./progress.ts";
import type { ScriptStep } from "./script-step.ts";

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
    const position = positionOf(request, script) ?? served.get(key);
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
    return words(isSummaryRequest(request) ? summaryAt(step, script) : wrapUpAt(step, script));
  }
  const happened = whatHappened(request.items, position, script);
  if (position?.ended === true || step >= script.length) return words(afterTheEnd(happened));
  const again = happened.cutOff && position !== undefined && position.repeats < MAX_REPEATS;
  const next: Position = again
    ? { step, repeats: position.repeats + 1, ended: false }
    : { step: step + 1, repeats: 0, ended: step + 1 >= script.length };
  const scripted = script[next.step - 1];
  if (scripted === undefined) return words(afterTheEnd(happened));
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

function words(text: string): Answer {
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
