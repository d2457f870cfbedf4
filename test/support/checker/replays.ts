/** I12: every run's history replays on the current code. */
import type { Evidence } from "./evidence.ts";
import type { Violation } from "./violation.ts";

export function checkReplays({ histories }: Pick<Evidence, "histories">): Violation[] {
  return histories.flatMap(({ runId, replayFailure }) =>
    replayFailure === undefined
      ? []
      : [{ claim: "I12", where: `run ${runId}`, expected: "a history that replays", found: replayFailure }],
  );
}
