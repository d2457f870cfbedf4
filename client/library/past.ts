/** The library's methods on what a session has behind it: its calls, its context, its compactions, earlier steps. */
import type { SessionRow } from "../../activities/store/reading.ts";
import type { Services } from "../connect/connection.ts";
import { noSuchSession } from "../console/errors.ts";
import { callResult } from "../sessions/session-export.ts";
import { compactionFocus, compactSession, undoCompaction } from "../sessions/compact-session.ts";
import { forkSession } from "../sessions/fork-session.ts";
import { retrySession } from "../sessions/retry-session.ts";
import { parseSessionId } from "../sessions/session-id.ts";
import { noStdin, readMessage } from "../sessions/task-input.ts";
import type { Longhaul } from "./types.ts";

type Past = Pick<Longhaul, "callResult" | "compact" | "undoCompaction" | "context" | "retry" | "fork">;

export function pastOf(services: Services, session: (reference: string) => Promise<SessionRow>): Past {
  return {
    callResult: async (reference, call) => callResult(services, await session(reference), call),
    compact: async (reference, { focus = "" } = {}) => {
      const asked = compactionFocus(focus);
      await compactSession(services, await session(reference), asked);
    },
    undoCompaction: async (reference) => undoCompaction(services, await session(reference)),
    context: async (reference) => {
      const { id } = await session(reference);
      const { readContext } = await import("../../activities/context/context-report.ts");
      const report = await readContext(services.store.db, id);
      if (report === undefined) throw noSuchSession(id);
      return report;
    },
    retry: async (reference, { fromStep, dropMessages = false } = {}) =>
      retrySession(services, await session(reference), { fromStep, dropMessages }),
    fork: async (reference, { fromStep, message, id } = {}) => {
      const chosen = id === undefined ? undefined : parseSessionId(id);
      const words = message === undefined ? undefined : await readMessage([message], noStdin());
      const row = await session(reference);
      return { id: await forkSession(services, row, { fromStep, message: words, id: chosen }) };
    },
  };
}
