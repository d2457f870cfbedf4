/** Compaction that a person asks for, and taking one back. */
import { shellWord } from "../console/format.ts";
import { randomUUID } from "node:crypto";
import { readFigures, type SessionRow } from "../../activities/store/reading.ts";
import { undoWhileEnded } from "../../activities/store/compactions.ts";
import { compactSignal, undoCompactionSignal } from "../../workflows/messages.ts";
import { clientSanitizer } from "../config/config.ts";
import { unlessGone } from "../connect/describe-run.ts";
import { requireAccess } from "../connect/readiness.ts";
import type { Services } from "../connect/connection.ts";
import { notPossible, usageError } from "../console/errors.ts";
import { recordAction, withRunning } from "./with-session.ts";

const MAX_FOCUS_CHARS = 2_000;

/** `requested`: the session runs, and undoes it at its next step boundary. Tokens are the view's. */
export type Undone =
  | { readonly requested: true; readonly round: number }
  | {
      readonly undone: true;
      readonly round: number;
      /** How many messages are in view again. */
      readonly restored: number;
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    };

/** What a summary must keep in view, checked and cleaned; empty text means nothing. @throws ClientError (usage) if it is too long */
export function compactionFocus(text: string): string | undefined {
  const focus = text.trim();
  if (focus.length > MAX_FOCUS_CHARS)
    throw usageError(`The focus has ${focus.length} characters; at most ${MAX_FOCUS_CHARS} are allowed.`);
  return focus === "" ? undefined : clientSanitizer().clean(focus);
}

/** Asks for a compaction at the next step boundary. @throws ClientError (impossible) if the session does not run */
export async function compactSession(
  services: Services,
  row: SessionRow,
  focus: string | undefined,
): Promise<void> {
  const request = focus === undefined ? undefined : { focus };
  await withRunning(services, row, (handle) => handle.signal(compactSignal, request));
  await recordAction(services, row, "compact");
}

/** Undoes the newest round: at once if the session has ended. @throws ClientError (impossible) if there is none */
export async function undoCompaction(services: Services, row: SessionRow): Promise<Undone> {
  const { id } = row;
  const { compactionRounds = 0, step = 0 } = (await readFigures(services.store.db, [id])).get(id) ?? {};
  if (compactionRounds === 0) throw nothingToUndo(id);
  await requireAccess(services, id);
  const handle = (await services.temporal.client()).workflow.getHandle(id);
  await recordAction(services, row, "undo-compaction");
  const signalled = await unlessGone(() => handle.signal(undoCompactionSignal).then(() => true));
  if (signalled) return { requested: true, round: compactionRounds };
  const undone = await undoWhileEnded(services.store, { id, epoch: row.epoch, step }, randomUUID());
  if (undone === undefined) throw nothingToUndo(id);
  const { round, restored, tokensBefore, tokensAfter } = undone;
  return { undone: true, round, restored, tokensBefore, tokensAfter };
}

function nothingToUndo(id: string) {
  return notPossible(
    `${id} has no compaction round to undo.`,
    `See what is in view: longhaul context ${shellWord(id)}`,
  );
}
