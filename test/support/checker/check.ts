/** All claims over one session's evidence. Pure. */
import { checkBills } from "./bills.ts";
import { checkClosing } from "./closing.ts";
import type { Evidence } from "./evidence.ts";
import { checkGuidance } from "./guidance.ts";
import { checkMarks } from "./marks.ts";
import { checkPairs } from "./pairs.ts";
import { checkPromises } from "./promises.ts";
import { checkPrompts } from "./prompts.ts";
import { checkRounds } from "./rounds.ts";
import { checkSequences } from "./sequences.ts";
import { checkTexts } from "./texts.ts";
import { type Violation, violationOf } from "./violation.ts";
import { checkWatching } from "./watching.ts";

const CHECKS: readonly ((evidence: Evidence) => Iterable<Violation>)[] = [
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
  checkPromises,
  checkReplays,
];

/** @returns the violations, in the order of the claims; empty if there are none */
export function checkEvidence(evidence: Evidence): Violation[] {
  return CHECKS.flatMap((check) => [...check(evidence)]);
}

/** I12: every run's history replays on the current code. */
function* checkReplays({ histories }: Evidence): Iterable<Violation> {
  for (const { runId, replayFailure } of histories)
    if (replayFailure !== undefined)
      yield violationOf("I12")(`run ${runId}`, "a history that replays", replayFailure);
}
