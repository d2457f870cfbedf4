/** Notes for the sender of a message, a line each. */
import type { Services } from "../connect/connection.ts";
import { describeRun } from "../connect/describe-run.ts";
import { isOfWorkflow } from "../connect/run-trouble.ts";
import type { Sent } from "../sessions/send-guidance.ts";
import { present } from "../console/format.ts";

/** @param what was sent, such as `the interrupt` */
export async function untakenNote({ temporal }: Services, id: string, what: string): Promise<string> {
  const trouble = (await describeRun(temporal, id))?.trouble;
  return isOfWorkflow(trouble)
    ? `No worker can take ${what}: Temporal keeps it until one can. It is tried again: ${trouble}`
    : `No worker has taken ${what} yet. Temporal keeps it until one does; start one with: longhaul worker`;
}

export async function sentNotes(
  services: Services,
  id: string,
  { acknowledged, waitsForNextRun, resumed }: Sent,
): Promise<string[]> {
  return present(
    !acknowledged && (await untakenNote(services, id, "it")),
    waitsForNextRun === true &&
      `${id} is ending and will not read it: the message is kept for its next run. Start that with: longhaul say ${id} "go on"`,
    resumed && `${id} had ended and resumes with it. Watch it: longhaul watch ${id}`,
  );
}
