/** A new session that continues from an earlier point of another, which is not changed. */
import { randomUUID } from "node:crypto";
import type { Guidance } from "../../activities/contract/guidance.ts";
import { senderOf } from "../../activities/contract/person-name.ts";
import { forkSession as copySession } from "../../activities/store/fork.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { lastStep } from "../../activities/store/sessions.ts";
import { WORKFLOW_TYPE, type CodingAgentInput } from "../../workflows/messages.ts";
import type { Services } from "../connect/connection.ts";
import { requireKey } from "../connect/require-key.ts";
import { notPossible } from "../console/errors.ts";
import { awaitSaves, requireStep } from "./retry-session.ts";
import { partsOf } from "./send-guidance.ts";
import { createSessionId } from "./session-id.ts";
import { settingsOf } from "./settings-of.ts";
import { workflowOptions } from "./start-session.ts";

export interface ForkOrder {
  /** The first step that is not copied; undefined: everything finished is copied. */
  readonly fromStep: number | undefined;
  readonly message: string | undefined;
  readonly id: string | undefined;
}

/**
 * @returns the new session's id
 * @throws ClientError (usage) for a step that never ran, (impossible) if the id is used or a step is not finished,
 * (missing) as `requireKey`
 */
export async function forkSession(services: Services, row: SessionRow, order: ForkOrder): Promise<string> {
  const { store } = services;
  await requireKey(services.temporal, row.id);
  const config = settingsOf(row);
  const client = await services.temporal.client();
  const last = await lastStep(store.db, row.id);
  const beforeStep = order.fromStep ?? last + 1;
  requireStep(row.id, beforeStep, last);
  await awaitSaves(store.db, row.id);
  const id = await copy(services, row.id, beforeStep, order.id);
  const guidance = order.message === undefined ? [] : [await guidanceOf(services, id, order.message)];
  await client.workflow.start(WORKFLOW_TYPE, {
    ...workflowOptions(services.taskQueue, id, { task: row.task, config }),
    args: [(guidance.length === 0 ? {} : { guidance }) satisfies CodingAgentInput],
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
    const forked = await copySession(services.store, { from, to, beforeStep });
    if (forked.kind === "forked") return to;
    if (forked.kind === "unfinished") {
      throw notPossible(
        `Step ${forked.step} of ${from} has calls that have not ended.`,
        `Wait for them, or leave that step out: longhaul fork ${from} --from-step ${forked.step}`,
      );
    }
    if (chosen !== undefined)
      throw notPossible(`The id ${chosen} belongs to a session already.`, "Choose another --id.");
  }
}

async function guidanceOf(services: Services, sessionId: string, text: string): Promise<Guidance> {
  const parts = await partsOf(services, sessionId, { id: undefined, text, attachments: [] });
  return {
    id: randomUUID(),
    parts,
    queuedAt: new Date().toISOString(),
    ...senderOf({ by: services.user }),
  };
}
