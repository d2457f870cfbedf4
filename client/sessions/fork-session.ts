/** A new session that continues from an earlier point of another, which is not changed. */
import { shellWord } from "../console/format.ts";
import { randomUUID } from "node:crypto";
import type { Client } from "@temporalio/client";
import { WorkflowExecutionAlreadyStartedError } from "@temporalio/common";
import { type Guidance, senderOf } from "../../activities/contract/guidance.ts";
import { copySessionLine, isFork } from "../../activities/store/fork.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { lastStep } from "../../activities/store/sessions.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import type { CodingAgentInput } from "../../workflows/run-input.ts";
import { acceptedGuidance } from "../../temporal/session-runs.ts";
import { readHistory, describedRun } from "../../temporal/runs.ts";
import type { Services } from "../connect/connection.ts";
import { settled } from "../connect/missing-service.ts";
import { requireAccess } from "../connect/readiness.ts";
import { notPossible } from "../console/errors.ts";
import { awaitSaves, requireStep } from "./retry-session.ts";
import { partsToSend } from "./guidance.ts";
import { createSessionId } from "./session-id.ts";
import { parseSettings } from "./with-session.ts";
import { readStarter, workflowOptions } from "./start-session.ts";

export interface ForkOrder {
  /** The first step that is not copied; undefined: everything finished is copied. */
  readonly fromStep: number | undefined;
  readonly message: string | undefined;
  readonly id: string | undefined;
}

/**
 * @returns the new session's id
 * @throws ClientError (usage) for a step that never ran, (impossible) if the id is used or a step is not finished,
 * (missing) as `requireAccess`
 */
export async function forkSession(
  services: Services,
  row: SessionRow,
  forkOrder: ForkOrder,
): Promise<string> {
  const { store } = services;
  await requireAccess(services, row.id);
  if (forkOrder.id !== undefined) await requireAccess(services, forkOrder.id);
  const config = parseSettings(row);
  const client = await services.temporal.client();
  const last = await lastStep(store.db, row.id);
  const beforeStep = forkOrder.fromStep ?? last + 1;
  requireStep(row.id, beforeStep, last);
  await awaitSaves(store.db, row.id);
  const id = await copy(services, row.id, beforeStep, forkOrder.id);
  const guidance = forkOrder.message === undefined ? [] : [await guidanceOf(services, id, forkOrder.message)];
  await settled({
    make: async () => {
      try {
        await client.workflow.start(WORKFLOW_TYPE, {
          ...workflowOptions(await readStarter(services), id, { task: row.task, config }),
          workflowIdReusePolicy: "REJECT_DUPLICATE",
          args: [(guidance.length === 0 ? {} : { guidance }) satisfies CodingAgentInput],
        });
      } catch (error) {
        // The same order before, whose answer was lost.
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
        if (!(await hasBegunWith(client, id, guidance)))
          throw notPossible(
            `The fork ${id} has begun with another message.`,
            `Say this one to it: longhaul say ${shellWord(id)} "…"`,
          );
      }
      return true;
    },
    find: async () => (await describedRun(client, id)) !== undefined || undefined,
    what: `it started the fork ${id}`,
    again: `See it with: longhaul status ${shellWord(id)}. The same order starts it if it has not begun: longhaul fork ${shellWord(row.id)} --id ${shellWord(id)} …`,
  });
  return id;
}

async function copy(
  services: Services,
  from: string,
  beforeStep: number,
  chosen: string | undefined,
): Promise<string> {
  for (;;) {
    const to = chosen ?? createSessionId();
    const forked = await copySessionLine(services.store, { from, to, beforeStep });
    if (forked.kind === "forked") return to;
    if (forked.kind === "unfinished") {
      throw notPossible(
        `Step ${forked.step} of ${from} has calls that have not ended.`,
        `Wait for them, or leave that step out: longhaul fork ${shellWord(from)} --from-step ${forked.step}`,
      );
    }
    if (chosen !== undefined && (await isFork(services.store.db, { from, to, beforeStep }))) return to;
    if (chosen !== undefined)
      throw notPossible(`The id ${chosen} belongs to a session already.`, "Choose another --id.");
  }
}

/** Whether the session's run was started with these messages, whatever their ids. */
async function hasBegunWith(client: Client, id: string, messages: readonly Guidance[]): Promise<boolean> {
  if (messages.length === 0) return true;
  const run = await describedRun(client, id);
  if (run === undefined) return false;
  const received = acceptedGuidance(await readHistory(client, id, run.runId));
  const partsOfAll = (items: readonly Guidance[]) => JSON.stringify(items.map(({ parts }) => parts));
  return partsOfAll(received.slice(0, messages.length)) === partsOfAll(messages);
}

async function guidanceOf(services: Services, sessionId: string, text: string): Promise<Guidance> {
  const parts = await partsToSend(services, sessionId, { id: undefined, text, attachments: [] });
  return {
    id: randomUUID(),
    parts,
    queuedAt: new Date().toISOString(),
    ...senderOf({ by: services.user }),
  };
}
