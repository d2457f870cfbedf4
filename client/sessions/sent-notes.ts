/** Notes for the sender of a message, a line each. */
import type { Sent } from "../sessions/send-guidance.ts";
import { present } from "../console/format.ts";

/** @param what was sent, such as `the interrupt` */
export const untakenNote = (what: string): string =>
  `No worker has taken ${what} yet. Temporal keeps it until one does; start one with: longhaul worker`;

export function sentNotes(id: string, { acknowledged, waitsForNextRun, resumed }: Sent): string[] {
  return present(
    !acknowledged && untakenNote("it"),
    waitsForNextRun === true &&
      `${id} is ending and will not read it: the message is kept for its next run. Start that with: longhaul say ${id} "go on"`,
    resumed && `${id} had ended and resumes with it. Watch it: longhaul watch ${id}`,
  );
}
