/** A conversation's position in the script, read from the conversation itself. Pure. */
import type { ParsedRequest, WireItem } from "./wire.ts";
import type { ScriptStep } from "./script-step.ts";

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
export const positionMark = (step: number, steps: number): string =>
  `Rehearsal position: step ${step} of ${steps}`;

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
    ...request.items.flatMap((item) => (item.type === "message" ? [textOf(item)] : [])),
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

export function firstLine(text: string): string {
  return text.split("\n")[0] ?? "";
}

export function textOf(item: Extract<WireItem, { type: "message" | "result" }>): string {
  return item.parts.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}
