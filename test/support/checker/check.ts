/** All claims over one session's evidence. Pure. */
import { checkBills } from "./bills.ts";
import { checkClosing } from "./closing.ts";
import type { Evidence } from "./evidence.ts";
import { checkGuidance } from "./guidance.ts";
import { checkMarks } from "./marks.ts";
import { checkPairs } from "./pairs.ts";
import { checkPrompts } from "./prompts.ts";
import { checkReplays } from "./replays.ts";
import { checkRounds } from "./rounds.ts";
import { checkSequences } from "./sequences.ts";
import { checkShapes } from "./shapes.ts";
import { checkTexts } from "./texts.ts";
import type { Violation } from "./violation.ts";
import { checkWatching } from "./watching.ts";

const CHECKS: readonly ((evidence: Evidence) => Violation[])[] = [
  checkSequences,
  checkPairs,
  checkMarks,
  checkGuidance,
  checkPrompts,
  checkBills,
  checkRounds,
  checkClosing,
  checkTexts,
  checkWatching,
  checkShapes,
  checkReplays,
];

/** @returns the violations, in the order of the claims; empty if there are none */
export function checkEvidence(evidence: Evidence): Violation[] {
  return CHECKS.flatMap((check) => check(evidence));
}
