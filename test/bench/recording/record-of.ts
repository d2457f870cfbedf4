/** What of an export goes into the fixture: the conversation alone, in the export's own form. Pure. */
import type { exportDocument } from "../../../client/sessions/session-export.ts";

const NOTE =
  "Recorded with real tools in a real sandbox (Temporal, Postgres, Docker), without compaction and prune. The calls were chosen by a script " +
  "that follows this repository's own commits; the outputs are what the tools gave. Made by scripts/record-trajectory.ts.";

export function recordOf({ format, version, session, messages }: ReturnType<typeof exportDocument>) {
  return {
    format,
    version,
    note: NOTE,
    session: { task: session.task },
    messages: messages
      .filter(({ supersededEpoch }) => supersededEpoch === null)
      .map(({ sequence, step, role, kind, content }) => ({ sequence, step, role, kind, content })),
  };
}
