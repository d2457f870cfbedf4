/** What happened since the script's last step: unusable results, and messages from the person. Pure. */
import { shorten } from "../../activities/text/cut.ts";
import type { WireItem } from "./wire.ts";
import { callId, textOf, type Position } from "./position.ts";
import type { ScriptStep } from "./script-step.ts";

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
    item.type === "result" ? [{ id: item.callId, text: textOf(item) }] : [],
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
      (item.type === "message" && (item.role === "assistant" || textOf(item).includes(SUMMARY))),
  );
  return items
    .slice(Math.max(task, last) + 1)
    .flatMap((item) => (item.type === "message" && item.role === "user" ? [quote(textOf(item))] : []))
    .filter((text) => text !== "");
}

function quote(text: string): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return shorten(flat, MAX_QUOTE_CHARS);
}
