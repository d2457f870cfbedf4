/** Repositories whose bases are made for everyone, once or on a Temporal schedule; what the hosts have of them. */
import { createHash, randomUUID } from "node:crypto";
import { ScheduleNotFoundError, ScheduleOverlapPolicy, type Client } from "@temporalio/client";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import type { OwnerMemo } from "../../activities/contract/run-memo.ts";
import { WARM_WORKFLOW_TYPE, type WarmInput, warmWorkflowId } from "../../activities/contract/warm.ts";
import {
  findWarm,
  type HostWarmth,
  listHostWarmths,
  listWarms,
  removeWarm,
  saveWarm,
} from "../../activities/store/warms.ts";
import type { Services } from "../connect/connection.ts";
import { notPossible } from "../console/errors.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { readStarter } from "../sessions/start-session.ts";

const NAME_CHARS = 40;
const HASH_CHARS = 8;

/** The id of an address: readable in the Web UI, and no other's. */
export function toWarmId(url: string): string {
  const name = url
    .replace(/\.git\/?$/, "")
    .split(/[/:]/)
    .slice(-2)
    .join("-")
    .replaceAll(/[^A-Za-z0-9._-]/g, "-")
    .slice(-NAME_CHARS);
  return `${name}-${createHash("sha256").update(url).digest("hex").slice(0, HASH_CHARS)}`;
}

export interface WarmDocument {
  readonly repository: string;
  readonly id: string;
  /** How often, in ms; null: only when asked. */
  readonly everyMs: number | null;
  /** ISO time; null without a schedule. */
  readonly next: string | null;
  readonly hosts: readonly {
    readonly host: string;
    readonly commit: string | null;
    /** Of the files that git tracks or the set-up made, apart from packages. */
    readonly files: number | null;
    readonly bytes: number | null;
    /** ISO times. */
    readonly madeAt: string | null;
    readonly checkedAt: string;
    /** When a session last began on it. */
    readonly usedAt: string | null;
    /** Why the last look made no base; sessions use the one of before. */
    readonly failure: string | null;
  }[];
}

export async function readWarms({ store: { db }, temporal }: Services): Promise<WarmDocument[]> {
  const rows = (await unlessTableMissing(() => listWarms(db))) ?? [];
  if (rows.length === 0) return [];
  const warmths = await listHostWarmths(db);
  const client = await temporal.client();
  return Promise.all(
    rows.map(async ({ id, url }) => {
      const schedule = await describeWarm(client, id);
      return {
        repository: url,
        id,
        everyMs: schedule?.spec.intervals?.[0]?.every ?? null,
        next: schedule?.info.nextActionTimes[0]?.toISOString() ?? null,
        hosts: warmths.filter(({ warmId }) => warmId === id).map(toHost),
      };
    }),
  );
}

const toHost = ({ host, commit, files, bytes, failure, madeAt, checkedAt, usedAt }: HostWarmth) => ({
  host,
  commit,
  files,
  bytes,
  failure,
  madeAt: madeAt?.toISOString() ?? null,
  checkedAt: checkedAt.toISOString(),
  usedAt: usedAt?.toISOString() ?? null,
});

/** Makes the bases now. @returns what each host has, once all of them are done or away */
export async function warmNow(services: Services, url: string, config: RunConfig): Promise<WarmDocument> {
  const id = toWarmId(url);
  await saveWarm(services.store.db, { id, url, config });
  const client = await services.temporal.client();
  const { taskQueue, installation } = await readStarter(services);
  await client.workflow.execute(WARM_WORKFLOW_TYPE, {
    workflowId: `${warmWorkflowId(id)}:${randomUUID()}`,
    taskQueue,
    args: [{ warm: id } satisfies WarmInput],
    staticSummary: `bases of ${id}`,
    memo: { installation } satisfies OwnerMemo,
  });
  const warm = (await readWarms(services)).find((one) => one.id === id);
  if (warm === undefined) throw notPossible(`${url} is not kept warm any more: it was ended meanwhile.`);
  return warm;
}

/** Makes them at each interval, the first time at once. A schedule of before gets the new interval. */
export async function warmEvery(
  services: Services,
  url: string,
  { config, everyMs }: { readonly config: RunConfig; readonly everyMs: number },
): Promise<void> {
  const id = toWarmId(url);
  await saveWarm(services.store.db, { id, url, config });
  const client = await services.temporal.client();
  const { taskQueue, installation } = await readStarter(services);
  const spec = { intervals: [{ every: everyMs }] };
  if ((await describeWarm(client, id)) !== undefined) {
    const handle = client.schedule.getHandle(warmWorkflowId(id));
    await handle.update((before) => ({ ...before, spec }));
    await handle.trigger();
    return;
  }
  await client.schedule.create({
    scheduleId: warmWorkflowId(id),
    spec,
    action: {
      type: "startWorkflow",
      workflowType: WARM_WORKFLOW_TYPE,
      // Temporal appends the start time.
      workflowId: warmWorkflowId(id),
      taskQueue,
      args: [{ warm: id } satisfies WarmInput],
      staticSummary: `bases of ${id}`,
      memo: { installation } satisfies OwnerMemo,
    },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: everyMs },
    state: { triggerImmediately: true },
  });
}

/** Ends it. Sessions keep the bases that they stand on. @throws ClientError (impossible) if it is not kept warm */
export async function warmOff(services: Services, url: string): Promise<void> {
  const id = toWarmId(url);
  const client = await services.temporal.client();
  const { db } = services.store;
  const row = await unlessTableMissing(() => findWarm(db, id));
  const schedule = await describeWarm(client, id);
  if (row === undefined && schedule === undefined)
    throw notPossible(`${url} is not kept warm.`, "See which are: longhaul warm --list");
  if (schedule !== undefined) await client.schedule.getHandle(warmWorkflowId(id)).delete();
  await removeWarm(db, id);
}

async function describeWarm(client: Client, id: string) {
  try {
    return await client.schedule.getHandle(warmWorkflowId(id)).describe();
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined;
    throw error;
  }
}
