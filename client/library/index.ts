/** `longhaul/client`: sessions from a program of your own. See docs/library.md. */
import { checkedName } from "../config/people.ts";
import { openServices } from "../connect/connection.ts";
import { findServices } from "../setup/services.ts";
import { libraryOver } from "./library.ts";
import type { ConnectOptions, Longhaul } from "./types.ts";
import { definedFields } from "../console/format.ts";

export { ClientError, NoSuchSession, type ExitCode } from "../console/errors.ts";
export { describeEvent } from "../view/describe-event.ts";
export type { KnownPeople, Sentence, Tone } from "../view/sentence.ts";
export { ServiceMissing } from "../../temporal/service-missing.ts";
export type { Answered } from "../sessions/send-answer.ts";
export type { CancelledRun } from "../sessions/stop-session.ts";
export type { Interrupted } from "../sessions/stop-session.ts";
export type { AttachmentSource } from "../sessions/attachments.ts";
export type { Undone } from "../sessions/compact-session.ts";
export type { CallResult } from "../sessions/session-export.ts";
export type { Retried } from "../sessions/retry-session.ts";
export type { ContextReport } from "../../activities/context/context-report.ts";
export type { Sent } from "../sessions/guidance.ts";
export type { Started } from "../sessions/start-session.ts";
export type { SessionStatusDocument } from "../sessions/status-document.ts";
export type { ListedQuestion } from "../../activities/store/questions.ts";
export type * from "./batches.ts";
export type * from "./types.ts";

/**
 * Connects to Postgres, and to Temporal when it is first needed. Starts no service and no worker.
 * @throws ServiceMissing within 3 s if Postgres does not answer, ClientError (exit code 2) for a wrong option
 */
export async function connect(options: ConnectOptions = {}): Promise<Longhaul> {
  const { databaseUrl, temporalAddress, taskQueue, user: name, ...more } = options;
  const user = name === undefined ? undefined : checkedName(name, "user");
  const named = definedFields({ databaseUrl, temporalAddress, taskQueue });
  const services = await openServices({ ...findServices(), ...named });
  return libraryOver(user === undefined ? services : { ...services, user }, more);
}
