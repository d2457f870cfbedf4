/** Delivers after the session's end: starts its workflow only for that, because the worker has the credentials. */
import { shellWord } from "../console/format.ts";
import { WorkflowExecutionAlreadyStartedError } from "@temporalio/client";
import { mayBeOnForge, noForge } from "../../activities/config/git-settings.ts";
import { limitOf } from "../../activities/contract/limits.ts";
import type { DeliveryOrder } from "../../activities/contract/delivery.ts";
import type { VerifyOutcome } from "../../activities/contract/verify.ts";
import type { Store } from "../../activities/store/db.ts";
import { readFigures, type SessionRow } from "../../activities/store/reading.ts";
import { toDeliveryState, findRepository, listPublications } from "../../activities/store/repositories.ts";
import { findSession } from "../../activities/store/sessions.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import type { CodingAgentInput } from "../../workflows/run-input.ts";
import type { Services } from "../connect/connection.ts";
import { requireAccess } from "../connect/readiness.ts";
import { exitCodes, notPossible, type ExitCode } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { watchSession } from "./watch-session.ts";
import { parseSettings } from "../sessions/with-session.ts";
import { sessionHasEnded, readStarter, workflowOptions } from "../sessions/start-session.ts";

/**
 * Delivers, shows the progress, and prints the result: the branch with its commit, or the pull request's address.
 * @throws ClientError (impossible) if the session has no repository, or is running
 */
export async function deliverSession(
  services: Services,
  row: SessionRow,
  deliveryOrder: DeliveryOrder,
  output: Output,
): Promise<ExitCode> {
  const { id } = row;
  const { db } = services.store;
  const config = parseSettings(row);
  if (config.repository === undefined)
    throw notPossible(
      `${id} works on no repository: there is nothing to push to.`,
      `Its change on a branch of your checkout: longhaul apply ${shellWord(id)}`,
    );
  const { url } = config.repository;
  // Which one it is, the worker finds out.
  if (deliveryOrder.pr !== "none" && !mayBeOnForge(url))
    throw notPossible(noForge(url), `To deliver only the branch: longhaul push ${shellWord(id)}`);
  if (!sessionHasEnded(row)) throw atWork(id);
  if ((await findRepository(db, id)) === undefined)
    throw notPossible(`The repository of ${id} was never cloned: there is no work to deliver.`);
  await requireAccess(services, id);
  const afterSeq = (await readFigures(db, [id])).get(id)?.lastSeq ?? 0;
  const client = await services.temporal.client();
  let runId: string;
  try {
    const handle = await client.workflow.start(WORKFLOW_TYPE, {
      ...workflowOptions(await readStarter(services), id, { task: row.task, config }),
      args: [{ deliver: { order: deliveryOrder, outcome: outcomeOf(row) } } satisfies CodingAgentInput],
    });
    runId = handle.firstExecutionRunId;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) throw atWork(id);
    throw error;
  }
  const closing = () => Promise.resolve([]);
  // The final text is the previous run's result, not the one requested now.
  const quiet = { ...output, result: () => undefined };
  const code = await watchSession({
    services,
    sessionId: id,
    afterSeq,
    json: false,
    output: quiet,
    closing,
  });
  if (code === exitCodes.interrupted) return code;
  return showDelivered(db, { row, runId, order: deliveryOrder }, output);
}

/** Prints what the run has recorded as delivered. */
async function showDelivered(
  db: Store["db"],
  {
    row,
    runId,
    order: deliveryOrder,
  }: { readonly row: SessionRow; readonly runId: string; readonly order: DeliveryOrder },
  output: Output,
): Promise<ExitCode> {
  const { id, status } = row;
  const rows = (await listPublications(db, id)).filter((publication) => publication.runId === runId);
  if (toDeliveryState(rows) === "refused") return exitCodes.undelivered;
  const kind = deliveryOrder.pr === "none" ? "push" : "pull-request";
  const delivered = rows.find((publication) => publication.kind === kind && publication.status === "done");
  if (delivered !== undefined) output.result(`${delivered.url ?? `${delivered.ref} ${delivered.commit}`}\n`);
  else if (!(await hasEndedWell(db, id, { runId, status }))) return exitCodes.undelivered;
  else output.note("Nothing to deliver: everything is there already.\n");
  return exitCodes.completed;
}

/** Whether the run itself ended the session as it was, and the newest delivery, whichever run made it, was not refused. */
async function hasEndedWell(
  db: Store["db"],
  id: string,
  before: { readonly runId: string; readonly status: string },
): Promise<boolean> {
  const now = await findSession(db, id);
  if (now?.runId !== before.runId || now.status !== before.status) return false;
  return toDeliveryState(await listPublications(db, id)) !== "refused";
}

const atWork = (id: string) =>
  notPossible(`${id} is running: it delivers when it ends.`, `Watch it: longhaul watch ${shellWord(id)}`);

type Outcome = NonNullable<CodingAgentInput["deliver"]>["outcome"];

/** Expects the session to keep its outcome. */
function outcomeOf({ status, error, verified: found }: SessionRow): Outcome {
  // What is ordered is delivered as it is, so the files that were verified are not compared.
  const verified = found === null ? undefined : { outcome: found as VerifyOutcome, tree: "" };
  const { type, message } = (error ?? {}) as { readonly type?: string; readonly message?: string };
  const limit = limitOf(status, error);
  if (limit !== undefined) return { status: "max_steps", limit, verified };
  return {
    status: status as Outcome["status"],
    error: type === undefined ? undefined : { type, message: message ?? "" },
    verified,
  };
}
